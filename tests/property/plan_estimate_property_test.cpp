// Does the estimate of a random plan tell the peak and the bytes that a simulation of the written trace shows? And does
// the sketch of planned_memory.h, told without writing, never say less, and more only where moves meet?
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "policies/plan/plan_check.h"
#include "policies/plan/plan_writer.h"
#include "policies/profile/plan_estimate.h"
#include "policies/profile/planned_memory.h"
#include "policies/recompute/recompute.h"
#include "sim/trace/trace_check.h"
#include "tests/support/random_step.h"
#include "tests/support/rewrite_checks.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

// Re-runs of random units, and of what is left some storages wait on the host in a gap.
MemoryPlan random_plan(const StepProfile& p) {
  RecomputePlan recompute;
  recompute.kept_until.assign(p.trace().storages.size(), 0);
  const bool moves_alone = *rc::gen::arbitrary<bool>();
  for (const Pass& pass : passes(p.trace()))
    if (!moves_alone) plan_recompute(p.trace(), p.flow(), pass, random_units(p.trace(), p.flow(), pass), {}, recompute);
  MemoryPlan plan = memory_plan_of(p.trace(), p.flow(), recompute);
  TransferStyle host;
  host.tier = "host";
  plan.tiers.push_back(host);
  std::vector<bool> taken(p.trace().storages.size(), false);
  for (const StorageDecision& d : plan.storages) taken[d.storage] = true;
  for (const PlannedRerun& rerun : plan.reruns)
    for (const OpId id : rerun.ops)
      for (const Use& use : p.trace().uses_of(p.trace().ops[id])) taken[use.storage] = true;
  for (const Gap& gap : p.gaps()) {
    if (gap.wraps || taken[gap.storage] || gap.before <= gap.after + 1 || *rc::gen::arbitrary<bool>()) continue;
    StorageDecision d;
    d.storage = gap.storage;
    d.copies.push_back({{gap.after, true, 0}, 0});
    d.drops.push_back({{gap.after, true, 1}});
    d.fetches.push_back({{gap.before, false, 0}, 0});
    plan.storages.push_back(d);
    taken[gap.storage] = true;
  }
  return plan;
}

RC_GTEST_PROP(PlanEstimateProperty, IsWhatTheSimulationShows, ()) {
  const Trace before = random_step(*rc::gen::inRange<std::size_t>(1, 3));
  const Machine machine = test_machine();
  const auto pricer = test_pricer(machine);
  const StepProfile profile(before, machine);
  const MemoryPlan plan = random_plan(profile);
  RC_ASSERT(check_plan(plan, before, profile.flow()) == std::vector<std::string>{});
  const std::string allocator = *rc::gen::element<std::string>("pytorch", "ideal");
  const PlanEstimate estimate = estimate_plan(profile, plan, machine, *pricer, {allocator, ""});

  TraceEdit edit(before, machine.host);
  write_plan(plan, profile.flow(), *pricer, edit);
  const Trace written = std::move(edit).apply();
  RC_ASSERT(check(written) == std::vector<std::string>{});
  SimulationOptions options;
  options.allocator = allocator;
  const SimulationResult simulated = simulate(written, machine, options);
  RC_TAG(plan.storages.empty() ? "nothing leaves" : plan.reruns.empty() ? "moves" : "re-runs, perhaps moves");
  for (std::size_t t = 0; t < machine.tiers.size(); ++t) {
    RC_ASSERT(estimate.tiers[t].peak_allocated == simulated.tiers[t].peak_allocated);
    RC_ASSERT(estimate.tiers[t].peak_reserved == simulated.tiers[t].peak_reserved);
    RC_ASSERT(estimate.tiers[t].missing == simulated.tiers[t].missing);
  }
  const auto link = [&](const char* name) {
    return simulated.links[static_cast<std::size_t>(machine.link(name))].bytes;
  };
  RC_ASSERT(estimate.bytes_out == link("pcie_d2h"));
  RC_ASSERT(estimate.bytes_in == link("pcie_h2d"));
  RC_ASSERT(estimate.rerun_ops == count(written, Phase::recompute));
  RC_ASSERT(estimate.rerun_time == device_time(written, Phase::recompute));
}

// The sketch has one figure per op: what is dropped behind an op and what is fetched before the next meet in it.
RC_GTEST_PROP(PlanEstimateProperty, TheSketchOfMovesIsNeverTooLow, ()) {
  const Trace before = random_step(1);
  const Machine machine = test_machine();
  const auto pricer = test_pricer(machine);
  const StepProfile profile(before, machine);
  const MemoryPlan plan = random_plan(profile);
  if (!plan.reruns.empty()) return;  // what lives only within a re-run is left out
  const Bytes peak = estimate_plan(profile, plan, machine, *pricer).tiers[0].peak_allocated;
  const Bytes sketch = planned_peak(profile, plan);
  Bytes meeting = 0;
  for (const StorageDecision& d : plan.storages)
    for (const StorageDecision& other : plan.storages)
      if (!other.fetches.empty() && d.drops.front().at.op + 1 == other.fetches.front().at.op) {
        meeting += profile.held(d.storage);
        break;
      }
  RC_CLASSIFY(sketch == peak, "exact");
  RC_ASSERT(sketch >= peak);
  RC_ASSERT(sketch <= peak + meeting);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
