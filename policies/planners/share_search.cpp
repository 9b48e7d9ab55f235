#include "policies/planners/share_search.h"

#include <utility>

#include "policies/profile/planned_memory.h"

namespace memwall {

MemoryPlan plan_of_largest_share(const StepProfile& profile, const Budget& budget,
                                 const std::function<MemoryPlan(double share)>& plan_of) {
  constexpr int kSteps = 20;
  MemoryPlan best;
  Bytes least = PlannedMemory(profile).peak();
  for (int step = kSteps; step >= 0; --step) {
    MemoryPlan plan = plan_of(static_cast<double>(step) / kSteps);
    const Bytes peak = planned_peak(profile, plan);
    if (peak <= budget.device) return plan;
    if (peak >= least) continue;
    least = peak;
    best = std::move(plan);
  }
  return best;
}

}  // namespace memwall
