#include "policies/planners/share_search.h"

#include <utility>

#include "policies/profile/planned_memory.h"
#include "sim/values_by_key.h"

namespace memwall {
namespace {

constexpr int kSteps = 20;

struct SharePlan {
  MemoryPlan plan;
  Bytes peak = 0;
};

struct SharePlans {
  ValuesByKey<std::pair<std::string, int>, SharePlan> all;  // settings, steps of the share
};

}  // namespace

MemoryPlan plan_of_largest_share(const StepProfile& profile, const Budget& budget, const std::string& settings,
                                 const std::function<MemoryPlan(double share)>& plan_of) {
  const SharePlans& plans = profile.derived().once<SharePlans>([] { return SharePlans{}; });
  const MemoryPlan* best = nullptr;
  Bytes least = PlannedMemory(profile).peak();
  for (int step = kSteps; step >= 0; --step) {
    const SharePlan& made = plans.all.get({settings, step}, [&] {
      SharePlan one{plan_of(static_cast<double>(step) / kSteps)};
      one.peak = planned_peak(profile, one.plan);
      return one;
    });
    if (made.peak <= budget.device) return made.plan;
    if (made.peak >= least) continue;
    least = made.peak;
    best = &made.plan;
  }
  return best == nullptr ? MemoryPlan{} : *best;
}

}  // namespace memwall
