// Of planners that are told how large a share of the activations is kept: the largest one that keeps to a budget.
#pragma once

#include <functional>
#include <string>

#include "policies/planners/budget.h"
#include "policies/profile/step_profile.h"
#include "sim/policy/memory_plan.h"

namespace memwall {

// The plan of the first share of 1, 0.95, 0.9, ... 0 with which no more lives than the budget allows; where none keeps
// to it, the one with which the least lives. Plans are kept with the profile for the next budget: `settings` names the
// planner and all that its plans depend on beside the share. REQUIRES: equal settings, equal plans.
MemoryPlan plan_of_largest_share(const StepProfile& profile, const Budget& budget, const std::string& settings,
                                 const std::function<MemoryPlan(double share)>& plan_of);

}  // namespace memwall
