// memwall import: a capture becomes a trace file.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <memory>

#include "cli/output_file.h"
#include "cli/verbs/verbs.h"
#include "cli/workload_file.h"
#include "sim/error.h"
#include "sim/trace_check.h"
#include "traces/trace/trace_file.h"

namespace memwall {
namespace {

struct Options {
  std::string capture, execution_trace, step_range, output;
};

int import_capture(const Options& o) {
  const Workload workload = load_workload(o.capture, o.execution_trace, o.step_range);
  require_harmless(o.output, workload.files);
  require_sound(workload.trace, o.capture);
  write_trace(workload.trace, o.output);
  fmt::print(stderr, "{} ({})\n", o.capture, to_string(workload.kind));
  for (const std::string& line : workload.report) fmt::print(stderr, "  {}\n", line);
  for (const std::string& line : workload.trace.notes) fmt::print(stderr, "  {}\n", line);
  fmt::print(stderr, "Wrote {}: {} ops, {} storages, {} steps.\n", o.output, workload.trace.ops.size(),
             workload.trace.storages.size(), workload.trace.steps.size());
  return 0;
}

}  // namespace

Verb add_import(CLI::App& parent) {
  auto o = std::make_shared<Options>();
  CLI::App* app = parent.add_subcommand("import", "Turn a capture into a trace file");
  app->add_option("capture", o->capture,
                  "A Kineto capture (torch.profiler's .json or .json.gz), a captured step (memwall_capture's .mwc or "
                  ".mwc.gz), a captured CUDA program (libmemwall_inject's .mwi), or a G10 workload (X.kernels.csv with "
                  "X.tensors.csv beside it); told apart by content")
      ->required();
  app->add_option(
      "--et", o->execution_trace,
      "ExecutionTrace of the same run (ExecutionTraceObserver): adds which operator uses which storage, and "
      "what each storage is for");
  app->add_option(
      "--step-range", o->step_range,
      "Of a captured CUDA program: its NVTX ranges that begin with this are the steps; default: those called "
      "step, iteration, iter, train_step or training_step, with a number or not");
  app->add_option("-o,--output", o->output, "The trace file to write (.mwt)")->required();
  app->footer(
      "The summary on stderr compares every count with the file, and says what was concluded from it:\n"
      "constants with their sample sizes, blocking calls, edges that are given or inferred.\n\n"
      "Examples:\n"
      "  memwall import profile.json.gz -o step.mwt\n"
      "  memwall import profile.json.gz --et et.json.gz -o step.mwt    # policies that need dataflow\n"
      "  memwall import step.mwc.gz -o step.mwt                        # captured with or without a GPU\n"
      "  memwall import memwall-4711.mwi --step-range epoch -o step.mwt   # any CUDA program\n"
      "  memwall import BERT-256.kernels.csv -o bert.mwt");
  return {app, [o] { return import_capture(*o); }};
}

}  // namespace memwall
