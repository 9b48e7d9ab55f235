// What a step takes under a memory plan: the plan is written, and its allocs and frees go through the real allocators
// in the order of the host program. No times: what the plan costs, a simulation says (simulate_plan).
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "policies/plan/plan_writer.h"
#include "policies/profile/step_profile.h"
#include "sim/engine/simulation.h"
#include "sim/machine/pricer.h"
#include "sim/policy/plan_allocator.h"
#include "sim/policy/memory_plan.h"

namespace memwall {

struct PlanEstimate {
  std::vector<TierResult> tiers;      // as Machine::tiers; without times
  bool fits = true;                   // all of them
  Bytes bytes_out = 0, bytes_in = 0;  // of device memory, that the plan copies
  std::size_t rerun_ops = 0;          // that run on the device
  Duration rerun_time{};              // of these alone
};

// `machine`: the profile's, or one with other capacities.
// REQUIRES: the plan can be carried out on the profile's trace (policies/plan/plan_check.h). "arena", which needs times,
// is taken as "ideal". Throws UsageError where the machine lacks a tier of the plan.
PlanEstimate estimate_plan(const StepProfile& profile, const MemoryPlan& plan, const Machine& machine,
                           const Pricer& pricer, const PlanAllocator& allocator = {});

// The step with the plan in it, and what it does with unlimited memory.
struct SimulatedPlan {
  Trace trace;
  SimulationResult result;
  WrittenPlan written;
};
// REQUIRES: as estimate_plan.
SimulatedPlan simulate_plan(const StepProfile& profile, const MemoryPlan& plan, const Pricer& pricer);
// The same on a machine with other capacities, with the allocator: what its calls to the device cost is in the times.
SimulatedPlan simulate_plan_on(const StepProfile& profile, const MemoryPlan& plan, const Machine& machine,
                               const Pricer& pricer, const PlanAllocator& allocator = {});

}  // namespace memwall
