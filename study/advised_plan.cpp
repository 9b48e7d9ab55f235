#include "study/advised_plan.h"

#include <algorithm>

#include "policies/plan/plan_owner.h"
#include "sim/trace/derived_lives.h"
#include "sim/trace/step_count.h"
#include "study/device_budget.h"

namespace memwall {
namespace {

void add_copies(AdvisedPlan& plan, const Trace& trace) {
  for (const Op& op : trace.ops) {
    if (op.phase == Phase::recompute && op.kind != OpKind::mark) plan.rerun_time += op.duration;
    if (op.kind != OpKind::copy || !op.added) continue;
    const std::string &from = trace.places[op.from], &to = trace.places[op.to];
    if (from == "hbm" && to != "hbm") plan.bytes_out += op.bytes;
    if (to == "hbm" && from != "hbm") plan.bytes_in += op.bytes;
  }
}

}  // namespace

AdvisedPlan simulated_plan(Study& study, const Scenario& scenario, const std::vector<std::string>& policies,
                           Bytes budget) {
  Scenario planned = scenario;
  planned.policies.insert(planned.policies.end(), policies.begin(), policies.end());
  // On a GPU of the budget's size: of more memory the allocator would cache more, and
  // the plan would seem faster than it is within the budget.
  const Bytes device_bytes = policies.empty() ? kUnlimitedDevice : budget;
  const Run run = study.run(planned, {.record = false, .device_bytes = device_bytes}).run;
  const auto tier = static_cast<std::size_t>(run.machine.tier("hbm"));
  const TierResult& device = run.result.tiers[tier];
  const auto steps = static_cast<std::int64_t>(step_count(*run.trace));
  AdvisedPlan plan;
  plan.policies = policies;
  plan.step_time = mean_step(run);
  plan.peak_reserved = device.peak_reserved;
  plan.allocator_time = device.device_calls;
  for (const TierResult& one : run.result.tiers) plan.missing = std::max(plan.missing, one.missing);
  for (const MemoryBudget& given : run.trace->budgets) plan.missing = std::max(plan.missing, given.over);
  plan.made_by = plan_owner_in(run.trace->notes);
  plan.lives_recorded = !has_derived_lives(run.trace);
  // The step as it is: does a GPU that has no more memory hold it? It does where the step never reserves as much, unless
  // settings of the allocator speak of parts of the device.
  const bool may_exceed = device.peak_reserved - run.trace->untracked_bytes > budget || !planned.allocator_settings.empty();
  if (may_exceed && device_bytes != budget) {
    const Run smaller = study.run(planned, {.record = false, .device_bytes = budget}).run;
    plan.missing = std::max(plan.missing, smaller.result.tiers[tier].missing);
    if (plan.missing == 0) {
      plan.step_time = mean_step(smaller), plan.peak_reserved = smaller.result.tiers[tier].peak_reserved;
      plan.allocator_time = smaller.result.tiers[tier].device_calls;
    }
  }
  plan.fits = run.result.fits && plan.missing == 0;
  add_copies(plan, *run.trace);
  plan.rerun_time /= steps;
  plan.allocator_time /= steps;
  plan.bytes_out /= steps;
  plan.bytes_in /= steps;
  return plan;
}

}  // namespace memwall
