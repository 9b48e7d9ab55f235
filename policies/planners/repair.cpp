#include "policies/planners/repair.h"

#include <algorithm>
#include <utility>

namespace memwall {
namespace {

constexpr int kMostTries = 8;

// With as much device memory as the budget, beside what is not the step's.
Machine machine_of(const StepProfile& profile, const Budget& budget) {
  Machine machine = profile.machine();
  Tier& device = machine.tiers[static_cast<std::size_t>(machine.tier("hbm"))];
  device.compression_ratio = 1;
  device.capacity = device.unavailable + profile.untracked() + budget.device;
  return machine;
}

}  // namespace

RepairedPlan repaired_plan(const Planner& planner, const StepProfile& profile, const Budget& budget,
                           const Pricer& pricer) {
  const Machine machine = machine_of(profile, budget);
  const auto device = static_cast<std::size_t>(machine.tier("hbm"));
  RepairedPlan best;
  Budget asked = budget;
  Bytes less = 0;
  for (int i = 0; i < kMostTries && asked.device > 0; ++i) {
    RepairedPlan next;
    next.plan = planner(profile, asked, profile.machine(), pricer);
    next.estimate = estimate_plan(profile, next.plan, machine, pricer);
    next.over = next.estimate.tiers[device].missing;
    const Bytes over = next.over;
    if (i > 0 && next.plan == best.plan) break;  // the planner has nothing more to give
    if (i == 0 || over < best.over) best = std::move(next);
    if (best.over == 0) break;
    // What is in pieces does not shrink by what is missing: each time more is asked for.
    less = std::max(over, 2 * less);
    asked.device -= less;
  }
  return best;
}

}  // namespace memwall
