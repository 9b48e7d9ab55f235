#include "study/base_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "models/hw/machine_file.h"
#include "models/hw/modelled_step.h"
#include "models/hw/transfer.h"
#include "policies/batch/batch_request.h"
#include "policies/batch/two_sizes.h"
#include "sim/error.h"
#include "sim/machine/gpu_place.h"
#include "sim/machine/rank_machine.h"
#include "sim/trace/equal_places.h"
#include "sim/trace/rank_apart.h"
#include "sim/trace/repeat.h"
#include "sim/trace/time_check.h"
#include "sim/trace/trace_check.h"
#include "study/measured_machine.h"
#include "study/scale_text.h"
#include "study/unsuited_work.h"
#include "traces/run/analysis/verdict.h"

namespace memwall {
namespace {

// Whoever has recorded no GPU work learns that before being asked for a machine.
void require_worth(const Scenario& s, const Trace& trace) {
  if (!asks_first(trace.completeness) || !trace.machine.empty()) return;
  throw UsageError(fmt::format(
      "{}: {} To see what its records give all the same: --accept-gaps, with --measured-on or --machine, as the file "
      "does not say on which machine it was measured.",
      name_of_step(s), completeness_sentence(trace.completeness, trace.completeness_reason)));
}

// Times of a GPU that is known by name alone are no other machine's.
void require_known(const Scenario& s, const Trace& trace, MachineSource& machines) {
  if (trace.machine.empty() || machines.knows(trace.machine)) return;
  throw UsageError(fmt::format("{}: {}", name_of_step(s), unknown_gpu_sentence(trace.machine, 0)));
}

// Times for a step that has none are modelled. On another machine than the trace's own, or on its own with settings,
// durations are transferred by the cost model.
SharedTrace on_machine(SharedTrace trace, const Scenario& s, const Machine& machine, MachineSource& machines) {
  if (measured_nowhere(trace)) {
    SharedTrace modelled = modelled_on(std::move(trace).take(), machine);
    note_unsuited_work(modelled.edit(), machine);
    return modelled;
  }
  const bool own_machine = s.machine.empty() || s.machine == trace->machine || trace->machine == machine.name;
  if (own_machine && s.settings.empty()) return trace;
  if (machines.knows(trace->machine)) {
    const auto own = machines.machine(trace->machine, {});
    const bool same_gpu = own->gpu.name == machine.gpu.name;  // then the capture shows that it runs there
    SharedTrace carried = transferred(std::move(trace).take(), own.get(), machine, {.host = s.transfer_host});
    if (!same_gpu) note_unsuited_work(carried.edit(), machine);
    return carried;
  }
  require_known(s, *trace, machines);
  Trace& unknown = trace.edit();
  unknown.notes.push_back(fmt::format(
      "The file does not say where it was measured: its times are taken as {}'s. To transfer them, give --measured-on.",
      machine.name));
  unknown.machine = machine.name;
  return trace;
}

// What is done to one rank is not done to those that its program stands for. Ranks that share a link are neighbours by
// number.
Trace apart(Trace trace, std::uint32_t number, const Machine& machine) {
  std::set<std::uint32_t> sizes{GpuPlaces(machine).node_size()};
  for (const Link& link : machine.links) sizes.insert(link.sharers);
  sizes.erase(0);
  return with_rank_apart(std::move(trace), number, [&](std::uint32_t one, std::uint32_t other) {
    return static_cast<int>(
        std::count_if(sizes.begin(), sizes.end(), [&](std::uint32_t size) { return one / size == other / size; }));
  });
}

// Ops are numbered in 32 bits.
void require_countable(const Scenario& s, const Trace& trace) {
  constexpr std::uint64_t kMostOps = std::uint64_t{1} << 31;
  if (trace.ops.size() * std::uint64_t{s.repeat} > kMostOps)
    throw UsageError(fmt::format("--steps {}: {} ops that many times are more than {}; expected at most {} steps.",
                                 s.repeat, trace.ops.size(), kMostOps, kMostOps / trace.ops.size()));
}

}  // namespace

const std::string& name_of_step(const Scenario& scenario) {
  static const std::string nothing;
  return scenario.step.empty() ? nothing : scenario.step.front();
}

std::shared_ptr<const Machine> choose_machine(const Scenario& s, const Trace& trace, MachineSource& machines) {
  if (!s.machine.empty()) return machines.machine(s.machine, s.settings);
  require_worth(s, trace);
  if (measured_nowhere(trace))
    throw UsageError(
        fmt::format("{}: nothing in it was measured; give --machine, for which its durations are then modelled "
                    "(`memwall machines` lists them).",
                    name_of_step(s)));
  if (trace.machine.empty())
    throw UsageError(fmt::format(
        "{}: the file does not say on which machine it was measured; give --measured-on, or --machine (`memwall "
        "machines` lists them).",
        name_of_step(s)));
  require_known(s, trace, machines);
  return machines.machine(trace.machine, s.settings);
}

SharedTrace base_step(SharedTrace trace, const Scenario& s, const Machine& machine, MachineSource& machines) {
  trace = in_equal_places(std::move(trace), machine);
  trace = on_machine(std::move(trace), s, machine, machines);
  if (lacks_durations(trace)) trace = with_missing_durations(std::move(trace).take(), machine);
  for (const ScaleFactors& factors : combined(parse_scales(s.scale))) {
    if (factors.rank) trace = apart(std::move(trace).take(), *factors.rank, machine);
    trace = scaled(std::move(trace).take(), factors);
    trace.edit().notes.push_back("Durations are scaled: " + coverage_text(factors) + ".");
  }
  if (s.repeat > 1) {
    require_countable(s, trace);
    trace = repeated(std::move(trace).take(), s.repeat);
  }
  require_countable_times(trace);  // before policies add times up
  return trace;
}

SharedTrace in_equal_places(SharedTrace trace, const Machine& machine) {
  const std::vector<std::uint32_t> sizes = shared_sizes(machine);
  if (has_equal_places(trace, sizes)) return trace;
  return with_equal_places(std::move(trace).take(), sizes);
}

bool sets_batch(const PolicySpec& spec) { return spec.info->kind == PolicyKind::batch; }

Trace between_sizes(const Trace& first, const Trace& second, const std::vector<PolicySpec>& specs) {
  const SizeUnit unit = unit_of_sizes(first, second);
  const auto batch = std::find_if(specs.begin(), specs.end(), sets_batch);
  const std::string example = "--policy " + batch_policy(unit == SizeUnit::samples ? BatchRequest{.samples = 16}
                                                                                   : BatchRequest{.tokens = 8192});
  if (batch == specs.end())
    throw UsageError(fmt::format("--second-size: which size is wanted is not said; give it with {}.", example));
  const BatchRequest asked = *batch_request(*batch);
  const std::int64_t size = unit == SizeUnit::samples ? asked.samples : asked.tokens;
  if (size == 0 || (asked.samples != 0 && asked.tokens != 0) || asked.captured != 0)
    throw UsageError(fmt::format("--policy {}: the two captures differ in {}; expected that size alone, as in {}.",
                                 batch->text, to_string(unit), example));
  return at_size(first, second, size);
}

}  // namespace memwall
