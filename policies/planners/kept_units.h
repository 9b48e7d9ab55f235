// Why a planner that computes units of forward again has left all of them as they were, and what it runs again of
// compiled ones.
#pragma once

#include <string>

#include "policies/profile/step_profile.h"
#include "sim/policy/memory_plan.h"

namespace memwall {

// "12 of 12 units are kept; layers.0: op 7 'nccl:all_reduce' communicates with other ranks, and would again." Where the
// plan runs something again, or no unit is refused: "". Reasons are those of the policy `checkpoint`.
std::string kept_units(const StepProfile& profile, const MemoryPlan& plan);

// Likewise; of a plan that runs units of compiled code again, that they are.
std::string rerun_units(const StepProfile& profile, const MemoryPlan& plan);

}  // namespace memwall
