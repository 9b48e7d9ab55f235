// memwall sweep: a step at many points, over axes of machines, policies and numbers; what is best, and what failed.
#include <fmt/format.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <cstdio>
#include <iostream>
#include <memory>
#include <optional>
#include <stdexcept>

#include "cli/one_line.h"
#include "cli/print/sweep_tables.h"
#include "cli/progress.h"
#include "cli/slurm_job.h"
#include "cli/sweep_command.h"
#include "cli/sweep_shards.h"
#include "cli/verbs/verbs.h"
#include "sim/error.h"
#include "study/sweep/asked_points.h"

namespace memwall {
namespace {

struct SweepVerbOptions : SweepOptions {
  std::string shard;
  SlurmOptions slurm;
  std::vector<std::string> journals;  // of sweep merge
  bool ask_tell = false;
};

// A bar; and on a terminal a line with each point that is better than all before.
class SweepDisplay {
 public:
  SweepDisplay(const std::vector<Axis>& axes, FieldUnit unit) : unit_(unit), is_terminal_(isatty(STDERR_FILENO) != 0) {
    for (const Axis& axis : axes) names_.axes.push_back(axis.name);
  }

  void show(const SweepProgress& p) {
    if (p.best != best_ && p.best != nullptr && p.best->objective && is_terminal_) {
      bar_.reset();
      print_error("  best so far, {} of {}{}: {} at {}\n", p.done, p.of,
                  p.failed > 0 ? fmt::format(" ({} failed)", p.failed) : "", value_text(*p.best->objective, unit_),
                  point_text(names_, *p.best));
      best_ = p.best;
    }
    if (!bar_) bar_.emplace("sweeping");
    bar_->update(p.of == 0 ? 1 : static_cast<double>(p.done) / static_cast<double>(p.of));
  }
  void end() { bar_.reset(); }

 private:
  const FieldUnit unit_;
  const bool is_terminal_;
  SweepResult names_;
  const SweepPoint* best_ = nullptr;
  std::optional<ProgressBar> bar_;
};

AskedRequest asked_request(const SweepVerbOptions& o, const StudyFile& study) {
  AskedRequest asked{.base = study.base,
                     .conditions = study.conditions,
                     .objective = study.objective,
                     .fields = study.fields,
                     .accept_gaps = o.points.accept_gaps,
                     .written_out = o.points.written_out};
  asked.axes = space_of(study, asked.base).axes;
  return asked;
}

// Lines of standard input, answered as they are finished.
int answer_lines(const SweepVerbOptions& o) {
  if (o.files.any() || o.one_line || !o.shard.empty() || o.slurm.tasks > 0 || !o.study.zips.empty() ||
      !o.study.sample.empty() || !o.study.figures.empty())
    throw UsageError(
        "--ask-tell: whoever asks chooses the points and has the answers; leave out --csv, --ndjson, --json, --figure, "
        "--one-line, --zip, --sample, --shard and --slurm.");
  const AskedRequest request = asked_request(o, study_of(o, false));
  const std::unique_ptr<SweepJournal> journal = o.points.journal.open();
  Study study;
  AskedPoints points(study, request, journal.get());
  answer_all(std::cin, points, jobs_or_all(o.points.jobs), [](const std::string& answer) {
    print(answer);
    if (std::fflush(stdout) != 0) throw std::runtime_error("standard output takes no more answers");
  });
  return 0;
}

int sweep_all(const SweepVerbOptions& o) {
  (void)parse_format(o.points.format);
  if (o.slurm.tasks > 0 && !o.shard.empty())
    throw UsageError(fmt::format(
        "--slurm {} makes all shards of the study, and --shard {} is one of them; leave out one of the two.",
        o.slurm.tasks, o.shard));
  const StudyFile study = study_of(o);
  SweepRequest request = request_of(o.points, study);
  for (const std::string& step : request.base.step)
    if (o.slurm.tasks > 0 && (step == "-" || step == "/dev/stdin"))
      throw UsageError("--slurm: the tasks of a job have no standard input of this command; expected the step as a file.");
  const std::vector<std::filesystem::path> inputs = inputs_of(o.study.base.step, study, request);
  const SweepPictures pictures(study.figures, request, inputs);
  for (const std::string& field : pictures.fields(request)) request.fields.push_back(field);
  require_own_places(o.files, o.points.journal.none ? "" : o.points.journal.place(), pictures, inputs);
  const SweepGoal goal(request.space.axes, request.conditions, request.objective, request.fields);
  if (o.slurm.tasks > 0) return run_as_slurm_job(o, o.slurm, study);
  SweepDisplay display(request.space.axes, goal.objective_unit());
  const SweepWatch watch = [&](const SweepProgress& progress) { display.show(progress); };
  if (!o.shard.empty()) return run_shard(o, study, request, o.shard, watch);
  const std::unique_ptr<SweepJournal> journal = o.points.journal.open();
  SweepResult result;
  {
    TerminalWatch reading("reading");
    Study steps(&reading);
    result = sweep(steps, request, journal.get(), watch);
  }
  display.end();
  return answer_sweep(o, study, request, result, pictures);
}

// What is said of the answer, of a study or of its shards.
void add_answer_options(CLI::App& app, SweepOptions& o) {
  app.add_option("--csv", o.files.csv, "Write a row per point here, a column per field; \"-\" prints it");
  app.add_option("--ndjson", o.files.ndjson, "Write an object per point here, one a line; \"-\" prints them");
  app.add_option("--json", o.files.json, "Write what --format json prints here");
  add_one_line_option(app, o.one_line, "each point, the best first,");
}

void add_merge(CLI::App& app, SweepVerbOptions& o) {
  CLI::App* merge = app.add_subcommand("merge", "The answer of a study whose points ran as shards (--shard)");
  merge->add_option("journals", o.journals, "The journals of all shards, in any order")->required();
  add_answer_options(*merge, o);
  merge->add_option("--format", o.points.format, "table, json, csv or md")->capture_default_str();
  merge->add_flag("--full", o.points.full, "Print every row; json and csv hold all of them anyway");
  merge->footer(
      "The answer is that of the study itself, byte by byte. Shards of other studies, one that is there twice and "
      "those\n"
      "that are missing are refused by name.\n\n"
      "Example:\n"
      "  memwall sweep links.study --shard 0/2 && memwall sweep links.study --shard 1/2   # anywhere\n"
      "  memwall sweep merge memwall-sweep.*-of-2.sqlite --csv links.csv");
}

void add_axis_options(CLI::App& app, SweepOptions& o) {
  app.add_option("--over", o.study.axes,
                 "An axis: NAME=a|b|c, NAME=1..64, NAME=16..64GB/s:log:9, NAME=0..1:step=0.25; behind it \" if "
                 "OTHER=value\". NAME: step, machine, policy, budget, pager, allocator, repeat, scale.host, a number "
                 "of the machine (pcie, gpu.hbm.bandwidth), a parameter of a policy (checkpoint.mode), a setting of a "
                 "generated step (batch, sequence, layers); repeatable")
      ->allow_extra_args(false);
  app.add_option("--zip", o.study.zips, "Axes that go together, value by value: batch,sequence; repeatable")
      ->allow_extra_args(false);
  app.add_option("--sample", o.study.sample,
                 "Not all combinations: random:N or latin:N (Latin hypercube), :SEED behind it");
  app.add_option("--where", o.study.conditions,
                 "What a point has to meet: fits, \"step_time < 1s and peak < 70GiB\"; over axes and the fields of "
                 "memwall run --format json; repeatable")
      ->allow_extra_args(false);
  app.add_option("--objective", o.study.objective,
                 "What is best: step_time, \"max samples_per_s\", \"price / (step_time * throughput)\" (dollars per "
                 "sample)");
  app.add_option("--show", o.study.fields,
                 "Columns of the table beside the axes, joined by commas; default: fits,step_time_s,peak")
      ->delimiter(',')
      ->allow_extra_args(false);
}

void add_sweep_options(CLI::App& app, SweepVerbOptions& o) {
  app.add_option("step", o.study.base.step,
                 "A trace, a capture, or a network's name, as for `memwall run`; an axis \"step\" stands in its place. "
                 "Or a study, FILE.study, which holds the other options, too");
  app.add_option("--preset", o.preset,
                 "A study of any step that memwall comes with: batch, compare-policies, links; a wrong name lists all");
  add_base_options(app, o.study);
  add_axis_options(app, o);
  add_answer_options(app, o);
  add_figure_option(app, o.study.figures);
  add_points_options(app, o.points);
  app.add_option("--shard", o.shard,
                 "Run a part of the points, I/N with I from 0 on, in a journal of its own; memwall sweep merge joins "
                 "the shards");
  add_slurm_options(app, o.slurm);
  app.add_flag(
      "--ask-tell", o.ask_tell,
      "Answer points that another program asks for on standard input, a line of JSON each: {\"id\": 1, \"set\": "
      "{\"batch\": 8}}");
}

}  // namespace

Verb add_sweep(CLI::App& parent) {
  auto o = std::make_shared<SweepVerbOptions>();
  CLI::App* app = parent.add_subcommand("sweep", "Run a step at many points over axes, and say which is best");
  add_sweep_options(*app, *o);
  add_merge(*app, *o);
  app->footer(
      "Finished points are kept in a journal (memwall-sweep.sqlite): the same command goes on where it was stopped, "
      "at\n"
      "any moment. Exit code 5 means: some points failed; the others are printed. docs/sweep.md has more.\n\n"
      "Examples:\n"
      "  memwall sweep step.mwt --machine a100-sxm-80gb,h100-sxm-80gb --over \"policy=none|checkpoint|plan\" \\\n"
      "    --over pcie=16..64GB/s:log:5 --where fits --objective step_time\n"
      "  memwall sweep llama3.2-1b --machine h100-sxm-80gb --preset batch\n"
      "  memwall sweep step.mwt --over budget=8..40GiB:9 --policy plan --csv budgets.csv\n"
      "  memwall sweep links.study --jobs 8\n"
      "  memwall sweep links.study --slurm 16 --slurm-cpus 4 --slurm-time 01:00:00 --csv links.csv\n"
      "  memwall sweep step.mwt --ask-tell --objective step_time --where fits      # for Optuna and others");
  return {app, [app, o] {
            if (app->get_subcommand("merge")->parsed()) return merge_shards(*o, o->journals);
            return o->ask_tell ? answer_lines(*o) : sweep_all(*o);
          }};
}

}  // namespace memwall
