// memwall run: replays a step on a machine under policies.
#include <fmt/format.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <map>
#include <memory>
#include <set>

#include "cli/output_file.h"
#include "cli/progress.h"
#include "cli/summary_tables.h"
#include "cli/table.h"
#include "cli/verbs/verbs.h"
#include "cli/workload_file.h"
#include "models/hw/machine_file.h"
#include "models/hw/pricer.h"
#include "models/hw/transfer.h"
#include "sim/error.h"
#include "sim/registry.h"
#include "sim/repeat.h"
#include "sim/scale.h"
#include "sim/trace_check.h"
#include "traces/run/run_file.h"
#include "traces/run/run_recorder.h"
#include "traces/run/summary.h"

namespace memwall {
namespace {

struct Options {
  std::string step, execution_trace, machine, pager, allocator = "pytorch", scale, output, format = "table";
  std::vector<std::string> settings, policies;
  std::uint32_t steps = 1;
  bool no_provenance = false;
  std::string command_line;  // for provenance
};

// "kernels=1.1,host=0.5"
ScaleFactors parse_scale(const std::string& text) {
  ScaleFactors factors;
  std::set<std::string> given;
  std::map<std::string, double*> known{
      {"kernels", &factors.kernels}, {"copies", &factors.copies}, {"host", &factors.host}};
  for (const std::string& item : CLI::detail::split(text, ',')) {
    if (text.empty()) break;
    const std::size_t equals = item.find('=');
    const auto found = known.find(item.substr(0, equals));
    if (found == known.end()) {
      const std::string near = nearest_name(item.substr(0, equals), {"kernels", "copies", "host"});
      throw UsageError(
          fmt::format("--scale {}: \"{}\" cannot be scaled{}; expected kernels, copies or host, as in "
                      "kernels=1.1,host=0.5.",
                      text, item.substr(0, equals), near.empty() ? "" : fmt::format(" (nearest: \"{}\")", near)));
    }
    double value = 0;
    if (equals == std::string::npos || !CLI::detail::lexical_cast(item.substr(equals + 1), value) ||
        !std::isfinite(value) || value < 0 || value > 1e6)
      throw UsageError(fmt::format(
          "--scale {}: \"{}\" has no factor; expected a number from 0 to 1e6, as in kernels=1.1.", text, item));
    if (!given.insert(found->first).second)
      throw UsageError(fmt::format("--scale {}: \"{}\" is given twice.", text, found->first));
    *found->second = value;
  }
  return factors;
}

std::string machine_names() {
  std::string names;
  for (const MachineSummary& m : list_machines()) names += (names.empty() ? "" : ", ") + m.name;
  return names;
}

Machine choose_machine(const Options& o, const Trace& trace) {
  if (!o.machine.empty()) return load_machine(o.machine, o.settings);
  if (trace.machine.empty())
    throw UsageError(
        fmt::format("{}: the file does not say on which machine it was measured; give --machine, one of {}.", o.step,
                    machine_names()));
  return load_machine(trace.machine, o.settings);
}

bool is_shipped(const std::string& machine) {
  const auto machines = list_machines();
  return std::any_of(machines.begin(), machines.end(), [&](const MachineSummary& m) { return m.name == machine; });
}

// On another machine than the trace's own, or on its own with settings, durations are carried over by the cost model.
Trace on_machine(Trace trace, const Machine& machine, const std::vector<std::string>& settings) {
  if (trace.machine == machine.name && settings.empty()) return trace;
  if (is_shipped(trace.machine)) {
    const Machine own = load_machine(trace.machine);
    return transferred(std::move(trace), &own, machine);
  }
  trace.notes.push_back(
      trace.machine.empty()
          ? fmt::format("The file does not say where it was measured: its times are taken as {}'s.", machine.name)
          : fmt::format("It was measured on {}, of which there is no machine file here: its times are "
                        "taken as {}'s.",
                        trace.machine, machine.name));
  trace.machine = machine.name;
  return trace;
}

std::vector<PolicySpec> parse_policies(const std::vector<std::string>& texts) {
  std::vector<PolicySpec> specs;
  for (const std::string& text : texts) {
    specs.push_back(parse_policy(text));
    if (!specs.back().info->make_rewriter)
      throw UsageError(
          fmt::format("--policy {}: \"{}\" is a pager; give it with --pager.", text, specs.back().info->name));
  }
  return specs;
}

std::unique_ptr<Pager> make_pager(const std::string& text) {
  if (text.empty()) return nullptr;
  const PolicySpec spec = parse_policy(text);
  if (!spec.info->make_pager)
    throw UsageError(
        fmt::format("--pager {}: \"{}\" rewrites the step beforehand; give it with --policy.", text, spec.info->name));
  return spec.info->make_pager(spec.arguments);
}

void require_pageable(const Options& o, const Trace& trace) {
  if (o.pager.empty() || (trace.knowledge.allocations && trace.knowledge.dataflow)) return;
  throw UsageError(fmt::format(
      "--pager {}: trace \"{}\" does not know {}, and a pager needs to; `memwall inspect` lists what "
      "it knows.",
      o.pager, trace.name, trace.knowledge.allocations ? "which op uses which storage" : "when memory is allocated"));
}

// Ops are numbered in 32 bits.
Trace require_countable(const Options& o, Trace trace) {
  constexpr std::uint64_t kMostOps = std::uint64_t{1} << 31;
  if (trace.ops.size() * std::uint64_t{o.steps} > kMostOps)
    throw UsageError(fmt::format("--steps {}: {} ops that many times are more than {}; expected at most {} steps.",
                                 o.steps, trace.ops.size(), kMostOps, kMostOps / trace.ops.size()));
  return trace;
}

Provenance provenance_now(std::chrono::steady_clock::time_point start, const std::string& command_line) {
  Provenance p;
  p.wall_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  char host[256] = "";
  if (::gethostname(host, sizeof host - 1) == 0) p.host = host;
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  ::gmtime_r(&now, &utc);
  char date[32];
  p.date.assign(date, std::strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", &utc));
  p.command_line = command_line;
  p.version = MEMWALL_VERSION;
  return p;
}

int report(const Options& o, const Run& run, Format format) {
  const RunSummary summary = summarize(run);
  print(format == Format::json ? to_json(summary) : to_text(summary_tables(summary), format));
  if (summary.fits) return 0;
  fmt::print(stderr, "memwall run: {} does not fit: {}. The result takes memory as unlimited.\n", o.step,
             missing_sentence(summary));
  return 3;
}

int run(const Options& o) {
  const auto start = std::chrono::steady_clock::now();
  const Format format = parse_format(o.format);
  const std::vector<PolicySpec> specs = parse_policies(o.policies);
  const std::unique_ptr<Pager> pager = make_pager(o.pager);
  make_allocator(o.allocator, 0);  // a wrong name is told before a long import
  const ScaleFactors factors = parse_scale(o.scale);
  if (!o.machine.empty()) load_machine(o.machine, o.settings);

  Workload workload = load_workload(o.step, o.execution_trace);
  require_harmless(o.output, workload.files);
  const Machine machine = choose_machine(o, workload.trace);
  require_pageable(o, workload.trace);
  Trace trace = scaled(on_machine(std::move(workload.trace), machine, o.settings), factors);
  if (!o.scale.empty()) trace.notes.push_back("Durations are scaled: " + o.scale + ".");
  if (o.steps > 1) trace = repeated(require_countable(o, std::move(trace)), o.steps);
  trace = apply_rewriters(trace, specs, machine, *make_pricer(machine));
  require_sound(trace, o.step);

  SimulationProgress progress;
  RunSettings settings{.policies = o.policies,
                       .pager_text = o.pager,
                       .allocator = o.allocator,
                       .pager = pager.get(),
                       .observer = &progress,
                       .inputs = {}};
  for (const auto& file : workload.files) settings.inputs.push_back({file.filename().string(), hash_of_file(file)});
  Run result = simulate_and_record(std::move(trace), machine, settings);
  if (!o.no_provenance) result.provenance = provenance_now(start, o.command_line);
  if (!o.output.empty()) write_run(result, o.output);
  return report(o, result, format);
}

void add_options(CLI::App& app, Options& o) {
  app.add_option("step", o.step,
                 "A trace file (.mwt), or a capture directly: Kineto .json or .json.gz, G10 X.kernels.csv; told apart "
                 "by content")
      ->required();
  app.add_option("--et", o.execution_trace, "ExecutionTrace of the same run, beside a Kineto capture");
  app.add_option("--machine", o.machine, "A machine's name or file; default: the one the step was measured on");
  app.add_option("--set", o.settings, "Override a number of the machine: gpu.hbm.bandwidth=4TB/s; repeatable")
      ->allow_extra_args(false);
  app.add_option("--policy", o.policies,
                 "Rewrite the step beforehand: NAME:key=value,key=value; repeatable, they compose")
      ->allow_extra_args(false);
  app.add_option("--pager", o.pager, "Decide online what leaves a full GPU: NAME:key=value; at most one");
  app.add_option("--allocator", o.allocator, "Of GPU memory: pytorch (the caching allocator) or ideal (bytes)")
      ->capture_default_str();
  app.add_option("--scale", o.scale, "Multiply durations: kernels=1.1,copies=1,host=0.5");
  app.add_option("--steps", o.steps, "Run the whole step this many times in a row")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  app.add_option("-o,--output", o.output, "Write the run here (.h5), for compare, export and render");
  app.add_option("--format", o.format, "table, json, csv or md")->capture_default_str();
  app.add_flag("--no-provenance", o.no_provenance,
               "Leave out wall time, host, date and command line: equal inputs, equal bytes");
}

}  // namespace

Verb add_run(CLI::App& parent, const std::string& command_line) {
  auto o = std::make_shared<Options>();
  o->command_line = command_line;
  CLI::App* app = parent.add_subcommand("run", "Replay a step on a machine under policies, and explain the result");
  add_options(*app, *o);
  app->footer(
      "Policies are listed by `memwall policies`, machines by `memwall machines`. The JSON is described in\n"
      "docs/run_json.md. Exit code 3 means: does not fit; the full result is still printed, with memory taken\n"
      "as unlimited, and stderr says how many bytes are missing where.\n\n"
      "Examples:\n"
      "  memwall run step.mwt                                             # the machine it was measured on\n"
      "  memwall run step.mwt --machine h100-sxm-80gb --policy checkpoint:mode=full\n"
      "  memwall run step.mwt --policy offload:what=optimizer,to=host -o run.h5\n"
      "  memwall run step.mwt --set link.pcie_h2d.bandwidth=50GB/s --format json\n"
      "  memwall run BERT-256.kernels.csv --pager lru                     # more than fits");
  return {app, [o] { return run(*o); }};
}

}  // namespace memwall
