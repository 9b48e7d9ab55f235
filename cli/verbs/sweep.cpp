// memwall sweep: a step at many points, over axes of machines, policies and numbers; what is best, and what failed.
#include <fmt/format.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <memory>
#include <optional>
#include <ostream>

#include "cli/output_file.h"
#include "cli/print/screen.h"
#include "cli/print/sweep_tables.h"
#include "cli/progress.h"
#include "cli/study_options.h"
#include "cli/sweep_pictures.h"
#include "cli/verbs/verbs.h"
#include "sim/error.h"
#include "sim/files/file_writer.h"
#include "study/sweep/study_file.h"
#include "study/sweep/sweep.h"

namespace memwall {
namespace {

constexpr int kPointsFailed = 5;

struct SweepOptions {
  StudyFile study;
  PointsOptions points;
  std::string preset, csv, ndjson, json;
};

bool is_study(const std::vector<std::string>& step) { return step.size() == 1 && step.front().ends_with(kStudyEnding); }

// A file's or a preset's, and what the command line says besides.
StudyFile study_of(const SweepOptions& o) {
  StudyFile given = o.study;
  StudyFile study;
  if (is_study(given.base.step)) {
    study = load_study_file(given.base.step.front());
    given.base.step.clear();
  }
  if (!o.preset.empty()) study = merged(load_study_preset(o.preset), study);
  study = merged(std::move(study), given);
  for (const std::string& axis : study.axes)
    if (study.base.step.empty() && axis.starts_with("step=")) study.base.step = {parse_axis(axis).values.front()};
  if (study.base.step.empty())
    throw UsageError(
        "The step is missing; expected a trace, a capture or a network's name, in the command or as step: in the "
        "study.");
  return study;
}

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

 private:
  const FieldUnit unit_;
  const bool is_terminal_;
  SweepResult names_;
  const SweepPoint* best_ = nullptr;
  std::optional<ProgressBar> bar_;
};

void write_files(const SweepOptions& o, const SweepResult& result) {
  const auto write = [](const std::string& path, const auto& text) {
    if (!path.empty()) write_output(path, [&](std::ostream& out) { out << text(); });
  };
  write(o.csv, [&] { return sweep_csv(result); });
  write(o.ndjson, [&] { return sweep_ndjson(result); });
  write(o.json, [&] { return sweep_json(result); });
}

std::string report_of(const SweepOptions& o, const StudyFile& study, const SweepResult& result, Format format) {
  if (format == Format::json) return sweep_json(result);
  if (format == Format::csv) return sweep_csv(result);
  // Those that nobody asked for need not be known: a capture may not say its memory.
  const std::vector<std::string> fields =
      study.fields.empty() ? std::vector<std::string>{"fits", "step_time_s", "peak"} : study.fields;
  return screen_text(sweep_tables(result, fields, study.title), format, o.points.full);
}

// Each output has a file of its own, and one at most is printed.
void require_own_places(const SweepOptions& o, const SweepPictures& pictures) {
  std::vector<std::pair<const char*, std::string>> places{
      {"--csv", o.csv},
      {"--ndjson", o.ndjson},
      {"--json", o.json},
      {"--journal", o.points.journal.none ? "" : o.points.journal.place()}};
  for (const std::string& file : pictures.files()) places.emplace_back("--figure", file);
  const auto whole = [](const std::string& place) {
    std::error_code error;
    return place == "-" ? std::filesystem::path(place)
                        : std::filesystem::weakly_canonical(std::filesystem::absolute(place), error);
  };
  for (const auto& one : places)
    for (const auto& other : places)
      if (&one < &other && !one.second.empty() && !other.second.empty() && whole(one.second) == whole(other.second))
        throw UsageError(
            fmt::format("{} and {} both name \"{}\"; expected two places.", one.first, other.first, one.second));
}

SweepRequest request_of(const SweepOptions& o, const StudyFile& study) {
  SweepRequest request{.base = study.base,
                       .space = {},
                       .conditions = study.conditions,
                       .objective = study.objective,
                       .fields = study.fields,
                       .jobs = jobs_or_all(o.points.jobs),
                       .accept_gaps = o.points.accept_gaps};
  request.space = space_of(study, request.base);
  if (request.space.axes.empty())
    throw UsageError(
        "There is no axis; expected one or several, as in --over policy=none|checkpoint, "
        "--machine a100-sxm-80gb,h100-sxm-80gb or --preset links.");
  return request;
}

// Files that the points may read, named by axes, too: no output may replace one.
std::vector<std::filesystem::path> inputs_of(const SweepOptions& o, const StudyFile& study,
                                             const SweepRequest& request) {
  std::vector<std::string> names = study.base.step;
  for (const std::vector<std::string>* more : {&o.study.base.step, &study.base.execution_traces, &study.machines})
    names.insert(names.end(), more->begin(), more->end());
  names.insert(names.end(), {study.base.onto, study.base.measured_on});
  for (const Axis& axis : request.space.axes) names.insert(names.end(), axis.values.begin(), axis.values.end());
  std::vector<std::filesystem::path> files;
  for (const std::string& name : names)
    if (std::error_code error; !name.empty() && std::filesystem::exists(name, error)) files.emplace_back(name);
  return files;
}

int sweep_all(const SweepOptions& o) {
  const Format format = parse_format(o.points.format);
  const StudyFile study = study_of(o);
  SweepRequest request = request_of(o, study);
  const std::vector<std::filesystem::path> inputs = inputs_of(o, study, request);
  const SweepPictures pictures(study.figures, request, inputs);
  for (const std::string& field : pictures.fields(request)) request.fields.push_back(field);
  require_own_places(o, pictures);
  for (const std::string& path : {o.csv, o.ndjson, o.json}) {
    require_harmless(path, inputs);
    if (!path.empty() && path != "-") (void)FileWriter(path);  // told before a long study
  }
  const std::unique_ptr<SweepJournal> journal = o.points.journal.open();
  SweepResult result;
  {
    TerminalWatch watch("reading");
    Study steps(&watch);
    const SweepGoal goal(request.space.axes, request.conditions, request.objective, request.fields);
    SweepDisplay display(request.space.axes, goal.objective_unit());
    result = sweep(steps, request, journal.get(), [&](const SweepProgress& progress) { display.show(progress); });
  }
  // The answer first: a file that cannot be written does not take it away.
  const bool prints_a_file = o.csv == "-" || o.ndjson == "-" || o.json == "-";
  print_beside(prints_a_file ? "-" : "", report_of(o, study, result, format));
  write_files(o, result);
  const int painted = pictures.write(request, result);
  // Not in the answer, which is the same however often a study was stopped.
  if (result.kept() > 0)
    print_error("memwall sweep: {} of {} came from {}.\n", result.kept(), counted_text(result.points.size(), "point"),
                o.points.journal.place());
  if (painted != 0 || result.failures() == 0) return painted;
  print_error("memwall sweep: {} of {} failed.\n", result.failures(), counted_text(result.points.size(), "point"));
  return kPointsFailed;
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

void add_sweep_options(CLI::App& app, SweepOptions& o) {
  app.add_option("step", o.study.base.step,
                 "A trace, a capture, or a network's name, as for `memwall run`; an axis \"step\" stands in its place. "
                 "Or a study, FILE.study, which holds the other options, too");
  app.add_option("--preset", o.preset,
                 "A study of any step that memwall comes with: batch, compare-policies, links; a wrong name lists all");
  add_base_options(app, o.study);
  add_axis_options(app, o);
  app.add_option("--csv", o.csv, "Write a row per point here, a column per field; \"-\" prints it");
  app.add_option("--ndjson", o.ndjson, "Write an object per point here, one a line; \"-\" prints them");
  app.add_option("--json", o.json, "Write what --format json prints here");
  add_figure_option(app, o.study.figures);
  add_points_options(app, o.points);
}

}  // namespace

Verb add_sweep(CLI::App& parent) {
  auto o = std::make_shared<SweepOptions>();
  CLI::App* app = parent.add_subcommand("sweep", "Run a step at many points over axes, and say which is best");
  add_sweep_options(*app, *o);
  app->footer(
      "Finished points are kept in a journal (memwall-sweep.sqlite): the same command goes on where it was stopped, "
      "at\n"
      "any moment. Exit code 5 means: some points failed; the others are printed. docs/sweep.md has more.\n\n"
      "Examples:\n"
      "  memwall sweep step.mwt --machine a100-sxm-80gb,h100-sxm-80gb --over \"policy=none|checkpoint|plan\" \\\n"
      "    --over pcie=16..64GB/s:log:5 --where fits --objective step_time\n"
      "  memwall sweep llama3.2-1b --machine h100-sxm-80gb --preset batch\n"
      "  memwall sweep step.mwt --over budget=8..40GiB:9 --policy plan --csv budgets.csv\n"
      "  memwall sweep links.study --jobs 8");
  return {app, [o] { return sweep_all(*o); }};
}

}  // namespace memwall
