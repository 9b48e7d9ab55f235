// memwall fit: the largest or the smallest value of one axis at which a condition holds, and what stops the next.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <memory>

#include "cli/one_line.h"
#include "cli/print/fit_tables.h"
#include "cli/print/screen.h"
#include "cli/progress.h"
#include "cli/study_options.h"
#include "cli/verbs/verbs.h"
#include "sim/error.h"
#include "study/sweep/fit.h"

namespace memwall {
namespace {

constexpr int kDoesNotFit = 3;
// What most people look for, as `memwall run --find-largest-batch`.
constexpr const char* kUsualAxis = "batch=1..1024";

struct FitOptions {
  StudyFile study;
  PointsOptions points;
  std::string axis = kUsualAxis;
  std::vector<std::string> conditions = {"fits"}, fields{};
  bool smallest = false, one_line = false;
};

FitRequest request_of(const FitOptions& o) {
  FitRequest request{.base = o.study.base,
                     .axis = parse_axis(o.axis),
                     .conditions = o.conditions,
                     .fields = o.fields,
                     .largest = !o.smallest,
                     .jobs = jobs_or_all(o.points.jobs),
                     .accept_gaps = o.points.accept_gaps,
                     .written_out = o.points.written_out};
  if (o.study.machines.size() > 1)
    throw UsageError("There are several machines, and the axis of a fit stands alone; expected one machine.");
  if (!o.study.machines.empty()) request.base.machine = o.study.machines.front();
  return request;
}

// Where no value ran, that is the answer, with the exit code of the reason.
void require_a_run(const FitResult& result) {
  if (std::ranges::any_of(result.probes, [](const FitProbe& p) { return p.point.ran(); })) return;
  const PointRecord& first = result.probes.front().point.record;
  if (first.cause == "input") throw InputError(first.error);
  throw UsageError(first.error);
}

int fit_axis(const FitOptions& o) {
  const Format format = parse_format(o.points.format);
  const FitRequest request = request_of(o);
  const std::unique_ptr<SweepJournal> journal = o.points.journal.open();
  FitResult result;
  {
    TerminalWatch watch("reading");
    Study study(&watch);
    ProgressBar bar("fitting");
    result = fit(study, request, journal.get(), [&](std::size_t done, std::size_t most) {
      bar.update(static_cast<double>(done) / static_cast<double>(most));
    });
  }
  require_a_run(result);
  // Those that nobody asked for need not be known: a capture may not say its memory.
  const std::vector<std::string> fields =
      o.fields.empty() ? std::vector<std::string>{"fits", "step_time_s", "peak"} : o.fields;
  if (o.one_line && result.edge.last)
    print(one_line(result.probe(*result.edge.last)->point.scenario, o.points.accept_gaps) + "\n");
  else if (!o.one_line)
    print(format == Format::json ? fit_json(request, result)
                                 : screen_text(fit_tables(request, result, fields), format, o.points.full));
  if (result.edge.last) return 0;
  print_error("memwall fit: there is no value of {} at which what is asked holds.\n", request.axis.name);
  return kDoesNotFit;
}

void add_fit_options(CLI::App& app, FitOptions& o) {
  app.add_option("step", o.study.base.step, "A trace, a capture, or a network's name, as for `memwall run`")
      ->required();
  app.add_option("--over", o.axis,
                 "The axis, as for `memwall sweep`: sequence=1024..65536:log:40, pcie=8..128GB/s:log:40")
      ->capture_default_str();
  app.add_flag("--smallest", o.smallest, "The smallest value, in place of the largest");
  app.add_option("--where", o.conditions,
                 "What has to hold, as for `memwall sweep`: fits, \"step_time < 1s\"; repeatable")
      ->allow_extra_args(false)
      ->capture_default_str();
  add_base_options(app, o.study);
  app.add_option("--show", o.fields, "Columns of the table, joined by commas; default: fits,step_time_s,peak")
      ->delimiter(',')
      ->allow_extra_args(false);
  add_points_options(app, o.points);
  add_one_line_option(app, o.one_line, "the value that was found");
}

}  // namespace

Verb add_fit(CLI::App& parent) {
  auto o = std::make_shared<FitOptions>();
  CLI::App* app = parent.add_subcommand("fit", "Find the largest or smallest value of one axis at which a step fits");
  add_fit_options(*app, *o);
  app->footer(
      "Exit code 3 means: it holds nowhere on the axis. docs/sweep.md has more.\n\n"
      "Examples:\n"
      "  memwall fit llama3.2-1b --machine h100-sxm-80gb            # the largest batch\n"
      "  memwall fit step.mwt --policy checkpoint --over gpu.hbm.capacity=8..80GiB:73 --smallest\n"
      "  memwall fit step.mwt --policy offload:what=activations --over pcie=8..128GB/s:log:40 --smallest \\\n"
      "    --where \"step_time < 70ms\"");
  return {app, [o] { return fit_axis(*o); }};
}

}  // namespace memwall
