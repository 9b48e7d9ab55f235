// memwall sweep: a step at many points, over axes of machines, policies and numbers; what is best, and what failed.
#include <fmt/format.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <memory>
#include <optional>
#include <ostream>
#include <thread>

#include "cli/onto_option.h"
#include "cli/output_file.h"
#include "cli/print/screen.h"
#include "cli/print/sweep_tables.h"
#include "cli/progress.h"
#include "cli/verbs/verbs.h"
#include "sim/error.h"
#include "study/sweep/sweep.h"

namespace memwall {
namespace {

constexpr int kPointsFailed = 5;

struct SweepOptions {
  Scenario base;
  std::vector<std::string> machines, axes, zips, conditions, fields = {"fits", "step_time_s", "peak"};
  std::string sample, objective, csv, ndjson, json, journal = kUsualJournal, format = "table";
  unsigned jobs = 0;
  bool no_journal = false, full = false;
};

// Several machines are an axis.
SweepSpace space_of(const SweepOptions& o, Scenario& base) {
  SweepSpace space;
  if (o.machines.size() == 1) base.machine = o.machines.front();
  if (o.machines.size() > 1) space.axes.push_back({.name = "machine", .values = o.machines});
  for (const std::string& text : o.axes) space.axes.push_back(parse_axis(text));
  for (const std::string& zip : o.zips) {
    std::vector<std::string> names;
    for (std::size_t begin = 0; begin <= zip.size();) {
      const std::size_t end = std::min(zip.find(',', begin), zip.size());
      names.push_back(zip.substr(begin, end - begin));
      begin = end + 1;
    }
    space.zips.push_back(std::move(names));
  }
  if (!o.sample.empty()) set_sampling(o.sample, space);
  if (space.axes.empty())
    throw UsageError(
        "There is no axis; expected one or several, as in --over policy=none|checkpoint or "
        "--machine a100-sxm-80gb,h100-sxm-80gb.");
  return space;
}

// A bar; and on a terminal a line with each point that is better than all before.
class SweepDisplay {
 public:
  explicit SweepDisplay(const std::vector<std::string>& axes) : is_terminal_(isatty(STDERR_FILENO) != 0) {
    names_.axes = axes;
  }

  void show(const SweepProgress& p) {
    if (p.best != best_ && p.best != nullptr && p.best->objective && is_terminal_) {
      bar_.reset();
      print_error("  best so far, {} of {}{}: {:.6g} at {}\n", p.done, p.of,
                  p.failed > 0 ? fmt::format(" ({} failed)", p.failed) : "", *p.best->objective,
                  point_text(names_, *p.best));
      best_ = p.best;
    }
    if (!bar_) bar_.emplace("sweeping");
    bar_->update(p.of == 0 ? 1 : static_cast<double>(p.done) / static_cast<double>(p.of));
  }

 private:
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

std::string report_of(const SweepOptions& o, const SweepResult& result, Format format) {
  if (format == Format::json) return sweep_json(result);
  if (format == Format::csv) return sweep_csv(result);
  return screen_text(sweep_tables(result, o.fields), format, o.full);
}

// Each output has a file of its own, and one at most is printed.
void require_own_places(const SweepOptions& o) {
  const std::pair<const char*, std::string> places[] = {
      {"--csv", o.csv}, {"--ndjson", o.ndjson}, {"--json", o.json}, {"--journal", o.no_journal ? "" : o.journal}};
  for (const auto& one : places)
    for (const auto& other : places)
      if (&one < &other && !one.second.empty() &&
          std::filesystem::path(one.second).lexically_normal() ==
              std::filesystem::path(other.second).lexically_normal())
        throw UsageError(
            fmt::format("{} and {} both name \"{}\"; expected two places.", one.first, other.first, one.second));
}

int sweep_all(const SweepOptions& o) {
  const Format format = parse_format(o.format);
  SweepRequest request{.base = o.base,
                       .space = {},
                       .conditions = o.conditions,
                       .objective = o.objective,
                       .fields = o.fields,
                       .jobs = o.jobs > 0 ? o.jobs : std::max(1u, std::thread::hardware_concurrency())};
  request.space = space_of(o, request.base);
  std::vector<std::filesystem::path> inputs(o.base.step.begin(), o.base.step.end());
  require_own_places(o);
  for (const std::string& path : {o.csv, o.ndjson, o.json}) require_harmless(path, inputs);
  std::optional<SweepJournal> journal;
  if (!o.no_journal) journal.emplace(o.journal);
  SweepResult result;
  {
    TerminalWatch watch("reading");
    Study study(&watch);
    std::vector<std::string> axes;
    for (const Axis& axis : request.space.axes) axes.push_back(axis.name);
    SweepDisplay display(axes);
    result = sweep(study, request, journal ? &*journal : nullptr,
                   [&](const SweepProgress& progress) { display.show(progress); });
  }
  write_files(o, result);
  const bool prints_a_file = o.csv == "-" || o.ndjson == "-" || o.json == "-";
  print_beside(prints_a_file ? "-" : "", report_of(o, result, format));
  if (result.failures() == 0) return 0;
  print_error("memwall sweep: {} of {} failed.\n", result.failures(), counted_text(result.points.size(), "point"));
  return kPointsFailed;
}

void add_base_options(CLI::App& app, SweepOptions& o) {
  app.add_option("step", o.base.step,
                 "A trace, a capture, or a network's name, as for `memwall run`; the first value of an axis \"step\", "
                 "where there is one")
      ->required();
  app.add_option("--et", o.base.execution_traces, "ExecutionTrace of the same run, beside a Kineto capture")
      ->allow_extra_args(false);
  add_onto_option(app, o.base.onto);
  app.add_option("--machine", o.machines, "A machine's name or file; several, joined by commas, are an axis")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_option("--measured-on", o.base.measured_on,
                 "The machine of the durations, a name or a file, where a capture does not say its GPU");
  app.add_option("--set", o.base.settings, "Override a number of the machine at every point; repeatable")
      ->allow_extra_args(false);
  app.add_option("--policy", o.base.policies, "A policy of every point: NAME:key=value; repeatable")
      ->allow_extra_args(false);
  app.add_option("--scale", o.base.scale, "Multiply durations at every point: host=0.5; repeatable")
      ->allow_extra_args(false);
}

void add_sweep_options(CLI::App& app, SweepOptions& o) {
  add_base_options(app, o);
  app.add_option("--over", o.axes,
                 "An axis: NAME=a|b|c, NAME=1..64, NAME=16..64GB/s:log:9, NAME=0..1:step=0.25; behind it \" if "
                 "OTHER=value\". NAME: step, machine, policy, budget, pager, allocator, repeat, scale.host, a number "
                 "of the machine (pcie, gpu.hbm.bandwidth), a parameter of a policy (checkpoint.mode), a setting of a "
                 "generated step (batch, sequence, layers); repeatable")
      ->allow_extra_args(false);
  app.add_option("--zip", o.zips, "Axes that go together, value by value: batch,sequence; repeatable")
      ->allow_extra_args(false);
  app.add_option("--sample", o.sample, "Not all combinations: random:N or latin:N (Latin hypercube), :SEED behind it");
  app.add_option("--where", o.conditions,
                 "What a point has to meet: fits, \"step_time < 1s and peak < 70GiB\"; over axes and the fields of "
                 "memwall run --format json; repeatable")
      ->allow_extra_args(false);
  app.add_option("--objective", o.objective,
                 "What is best: step_time, \"max samples_per_s\", \"price_dollars / samples_per_s\"");
  app.add_option("--show", o.fields, "Columns of the table beside the axes, joined by commas")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->capture_default_str();
  app.add_option("--csv", o.csv, "Write a row per point here, a column per field; \"-\" prints it");
  app.add_option("--ndjson", o.ndjson, "Write an object per point here, one a line; \"-\" prints them");
  app.add_option("--json", o.json, "Write what --format json prints here");
  app.add_option("--journal", o.journal, "Where finished points are kept, for the same command and for others")
      ->capture_default_str();
  app.add_flag("--no-journal", o.no_journal, "Keep none, and compute every point");
  app.add_option("--jobs", o.jobs, "Threads; default: as many as this computer runs. The result is the same")
      ->check(CLI::Range(1u, 1024u));
  app.add_option("--format", o.format, "table, json, csv or md")->capture_default_str();
  app.add_flag("--full", o.full, "Print every row; json and csv hold all of them anyway");
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
      "  memwall sweep llama3.2-1b --machine h100-sxm-80gb --over batch=1..32 --where fits --objective throughput\n"
      "  memwall sweep step.mwt --over budget=8..40GiB:9 --policy plan --csv budgets.csv");
  return {app, [o] { return sweep_all(*o); }};
}

}  // namespace memwall
