#include "study/prepared_step.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/output_file.h"
#include "models/hw/machine_file.h"
#include "models/hw/modelled_step.h"
#include "models/hw/pricer.h"
#include "models/hw/transfer.h"
#include "policies/batch/batch_request.h"
#include "policies/batch/two_sizes.h"
#include "sim/error.h"
#include "sim/policy/registry.h"
#include "sim/trace/repeat.h"
#include "sim/trace/trace_check.h"
#include "study/workload_file.h"

namespace memwall {
namespace {

std::string machine_names() {
  std::string names;
  for (const MachineSummary& m : list_machines()) names += (names.empty() ? "" : ", ") + m.name;
  return names;
}

Machine choose_machine(const StepSettings& s, const Trace& trace) {
  if (!s.machine.empty()) return load_machine(s.machine, s.settings);
  if (measured_nowhere(trace))
    throw UsageError(
        fmt::format("{}: nothing in it was measured; give --machine, for which its durations are then modelled: one of "
                    "{}.",
                    s.step, machine_names()));
  if (trace.machine.empty())
    throw UsageError(fmt::format(
        "{}: the file does not say on which machine it was measured; give --measured-on, or --machine, one of {}.",
        s.step, machine_names()));
  return load_machine(trace.machine, s.settings);
}

// Is it one that comes with memwall, or a file of the user's?
bool has_file(const std::string& machine) {
  std::error_code error;
  if (std::filesystem::is_regular_file(machine, error)) return true;
  const auto machines = list_machines();
  return std::any_of(machines.begin(), machines.end(), [&](const MachineSummary& m) { return m.name == machine; });
}

// Times for a step that has none are modelled. On another machine than the trace's own, or on its own with settings,
// durations are carried over by the cost model.
Trace on_machine(Trace trace, const Machine& machine, const StepSettings& s) {
  if (measured_nowhere(trace)) return modelled_on(std::move(trace), machine);
  const bool own_machine = s.machine.empty() || s.machine == trace.machine || trace.machine == machine.name;
  if (own_machine && s.settings.empty()) return trace;
  if (has_file(trace.machine)) {
    const Machine own = load_machine(trace.machine);
    return transferred(std::move(trace), &own, machine, {.host = s.carry_host});
  }
  trace.notes.push_back(
      trace.machine.empty()
          ? fmt::format("The file does not say where it was measured: its times are taken as {}'s. To carry them over, "
                        "give --measured-on.",
                        machine.name)
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

// Ops are numbered in 32 bits.
Trace require_countable(const StepSettings& s, Trace trace) {
  constexpr std::uint64_t kMostOps = std::uint64_t{1} << 31;
  if (trace.ops.size() * std::uint64_t{s.steps} > kMostOps)
    throw UsageError(fmt::format("--steps {}: {} ops that many times are more than {}; expected at most {} steps.",
                                 s.steps, trace.ops.size(), kMostOps, kMostOps / trace.ops.size()));
  return trace;
}

// The step at the size that the policy of the kind batch asks for, which leaves the list.
Trace between_sizes(const LoadedStep& loaded, std::vector<PolicySpec>& specs) {
  const SizeUnit unit = unit_of_sizes(loaded.trace, *loaded.second);
  const std::string example =
      batch_policy(unit == SizeUnit::samples ? BatchRequest{.samples = 16} : BatchRequest{.tokens = 8192});
  const auto batch =
      std::find_if(specs.begin(), specs.end(), [](const PolicySpec& p) { return p.info->kind == PolicyKind::batch; });
  if (batch == specs.end())
    throw UsageError(
        fmt::format("--second-size: which size is wanted is not said; give it with --policy {}.", example));
  const BatchRequest asked = *batch_request(*batch);
  const std::int64_t size = unit == SizeUnit::samples ? asked.samples : asked.tokens;
  if (size == 0 || (asked.samples != 0 && asked.tokens != 0) || asked.captured != 0)
    throw UsageError(
        fmt::format("--policy {}: the two captures differ in {}; expected that size alone, as in "
                    "--policy {}.",
                    batch->text, to_string(unit), example));
  specs.erase(batch);
  return at_size(loaded.trace, *loaded.second, size);
}

// As paths, without what is empty.
std::vector<std::filesystem::path> with_first(const std::string& first, const std::vector<std::string>& more) {
  std::vector<std::filesystem::path> paths;
  if (!first.empty()) paths.emplace_back(first);
  paths.insert(paths.end(), more.begin(), more.end());
  return paths;
}

}  // namespace

LoadedStep load_step(const StepSettings& s) {
  parse_policies(s.policies);
  make_pager(s.pager);
  if (!s.machine.empty()) load_machine(s.machine, s.settings);
  Workload workload = load_workload(with_first(s.step, s.more_ranks),
                                    with_first(s.execution_trace, s.more_execution_traces), "", s.measured_on);
  LoadedStep loaded{
      .trace = std::move(workload.trace), .second = {}, .machine = {}, .files = std::move(workload.files)};
  if (!s.second_size.empty()) {
    Workload second = load_workload(s.second_size, {}, s.measured_on);
    if (second.trace.machine != loaded.trace.machine)
      throw UsageError(fmt::format("--second-size {}: it was measured on '{}', {} on '{}'; expected one machine.",
                                   s.second_size, second.trace.machine, s.step, loaded.trace.machine));
    loaded.second = std::move(second.trace);
    loaded.files.insert(loaded.files.end(), second.files.begin(), second.files.end());
  }
  require_harmless(s.output, loaded.files);
  loaded.machine = choose_machine(s, loaded.trace);
  if (!s.pager.empty()) require_knowledge(parse_policy(s.pager), loaded.trace);
  return loaded;
}

PreparedStep prepare_step(const LoadedStep& loaded, const StepSettings& s) {
  std::vector<PolicySpec> specs = parse_policies(s.policies);
  PreparedStep result;
  result.pager = make_pager(s.pager);
  result.machine = loaded.machine;
  Trace trace = on_machine(loaded.second ? between_sizes(loaded, specs) : loaded.trace, result.machine, s);
  trace = with_missing_durations(std::move(trace), result.machine);
  for (const ScaleOption& scale : s.scale) {
    trace = scaled(std::move(trace), scale.factors);
    trace.notes.push_back("Durations are scaled: " + scale.text + ".");
  }
  if (s.steps > 1) trace = repeated(require_countable(s, std::move(trace)), s.steps);
  result.trace = apply_rewriters(trace, specs, result.machine, *make_pricer(result.machine));
  require_sound(result.trace, s.step);
  if (s.keep_unchanged && (!specs.empty() || result.pager)) result.unchanged = std::move(trace);
  result.files = loaded.files;
  return result;
}

PreparedStep prepare_step(const StepSettings& s) { return prepare_step(load_step(s), s); }

}  // namespace memwall
