#include "study/budget_bound.h"

#include <algorithm>
#include <utility>

#include "policies/cycle/moves_bound.h"
#include "policies/cycle/profile_cycle.h"
#include "policies/profile/largest_op.h"
#include "policies/profile/step_profile.h"
#include "sim/error.h"
#include "sim/policy/registry.h"

namespace memwall {
namespace {

// A bound is on all that the run holds; a step is what a window of it lasts in the mean.
class MeanStep {
 public:
  explicit MeanStep(const Run& run) : outside_(run.result.end) {
    for (const StepWindow& window : step_windows(run)) outside_ -= window.end - window.begin, ++windows_;
    outside_ = std::max(outside_, Duration{});
  }
  Duration of(double seconds) const {
    return std::max(Duration{}, from_seconds(seconds) - outside_) / std::max<std::int64_t>(1, windows_);
  }

 private:
  Duration outside_;
  std::int64_t windows_ = 0;
};

std::vector<std::string> slower_tiers(const Machine& machine, const std::vector<std::string>& names) {
  std::vector<std::string> found;
  for (const std::string& name : names)
    if (machine.tier(name) >= 0 && name != "hbm" && std::find(found.begin(), found.end(), name) == found.end())
      found.push_back(name);
  return found;
}

// What keeps a step from having a bound; "" = nothing.
std::string obstacle(const Run& run, const std::vector<std::string>& tiers) {
  const Knowledge needed{.timing = true, .allocations = true, .dataflow = true};
  const std::vector<std::string> missing = missing_knowledge(needed, run.trace->knowledge);
  if (!missing.empty())
    return "There is no lower bound: the step does not know its " + listed(missing) + ".";
  if (tiers.empty()) return "There is no lower bound: the machine has no memory beside the GPU's.";
  return "";
}

}  // namespace

BudgetBounds budget_bounds(const Run& unlimited, const std::vector<std::string>& tiers,
                           const std::vector<Bytes>& budgets) {
  const Machine& machine = unlimited.machine.one;
  const std::vector<std::string> slower = slower_tiers(machine, tiers);
  BudgetBounds bounds{obstacle(unlimited, slower), {}, slower};
  if (!bounds.why_none.empty()) return bounds;
  try {
    const StepProfile profile(*unlimited.trace, machine);
    const StepCycle& cycle = cycle_of(profile).cycle;
    const CycleLinks links = links_of_machine(machine, slower);
    const RerunPrices& prices = rerun_prices_of(profile);
    const MeanStep mean(unlimited);
    const Bytes least_budget = largest_op(profile).bytes;
    for (const Bytes budget : budgets) {
      BudgetBound bound{least_budget <= budget, least_budget, {}};
      if (bound.is_possible) bound.step_time = mean.of(joint_bound_seconds(cycle, links, budget, prices));
      bounds.at.push_back(bound);
    }
  } catch (const UsageError& error) {
    return {std::string("There is no lower bound. ") + error.what(), {}, {}};
  }
  return bounds;
}

}  // namespace memwall
