#include "policies/profile/plan_estimate.h"

#include "sim/engine/tier_memory.h"
#include "sim/memory/allocator_settings.h"

namespace memwall {
namespace {

std::vector<TierResult> allocated(const Trace& trace, const RankMachine& machine, const PlanAllocator& allocator) {
  const std::string& name = allocator.name;
  const AllocatorSettings settings = parse_allocator_settings(allocator.settings);
  TierMemory memory(trace, machine, tier_allocators(machine, name == "arena" ? "ideal" : name, settings), nullptr);
  const auto place = [&](StorageId s) {
    const int tier = machine.tier(trace.places[trace.storages[s].place]);
    if (!memory.place({}, s, tier)) memory.place_unlimited({}, s, tier);
  };
  for (StorageId s = 0; s < trace.storages.size(); ++s)
    if (trace.storages[s].preexisting) place(s);
  for (const Op& op : trace.ops) {
    if (op.kind == OpKind::alloc) place(op.target);
    if (op.kind == OpKind::free) memory.remove({}, op.target);
  }
  return memory.results();
}

Trace planned_trace_of(const StepProfile& profile, const MemoryPlan& plan, const Machine& machine, const Pricer& pricer,
                       WrittenPlan& written) {
  TraceEdit edit(profile.trace(), machine.host);
  written = write_plan(plan, profile.flow(), pricer, edit);
  return std::move(edit).apply();
}

}  // namespace

SimulatedPlan simulate_plan(const StepProfile& profile, const MemoryPlan& plan, const Pricer& pricer) {
  SimulatedPlan simulated;
  simulated.trace = planned_trace_of(profile, plan, profile.machine(), pricer, simulated.written);
  SimulationOptions options;
  options.allocator = "ideal";
  simulated.result = simulate(simulated.trace, profile.machine(), options);
  return simulated;
}

SimulatedPlan simulate_plan_on(const StepProfile& profile, const MemoryPlan& plan, const Machine& machine,
                               const Pricer& pricer, const PlanAllocator& allocator) {
  SimulatedPlan simulated;
  simulated.trace = planned_trace_of(profile, plan, machine, pricer, simulated.written);
  SimulationOptions options;
  options.allocator = allocator.name;
  options.allocator_settings = parse_allocator_settings(allocator.settings);
  simulated.result = simulate(simulated.trace, machine, options);
  return simulated;
}

PlanEstimate estimate_plan(const StepProfile& profile, const MemoryPlan& plan, const Machine& machine,
                           const Pricer& pricer, const PlanAllocator& allocator) {
  const Trace& trace = profile.trace();
  WrittenPlan written;
  const Trace planned = planned_trace_of(profile, plan, machine, pricer, written);
  PlanEstimate estimate;
  estimate.bytes_out = written.bytes_out;
  estimate.bytes_in = written.bytes_in;
  for (const PlannedRerun& rerun : plan.reruns)
    for (const OpId id : rerun.ops) {
      if (!runs_on_device(trace.ops[id].kind)) continue;
      ++estimate.rerun_ops;
      estimate.rerun_time += trace.ops[id].duration;
    }
  estimate.tiers = allocated(planned, machine_of_ranks(machine, planned), allocator);
  for (const TierResult& tier : estimate.tiers) estimate.fits = estimate.fits && tier.missing == 0;
  return estimate;
}

}  // namespace memwall
