// Fetches that are to be there by a point are issued as late as their links allow.
#pragma once

#include "policies/profile/step_profile.h"
#include "sim/policy/memory_plan.h"

namespace memwall {

// Does any fetch of the plan ask for that?
bool has_latest_safe(const MemoryPlan& plan);

// Moves each fetch that says `latest_safe` from the point by which its content has to be there to the latest at which
// its copy, on what the step and the plan's other copies leave of its links, arrives before the device is there; not
// before its storage is dropped, or its copy on the other tier is renewed. Where links have no such time left it is
// issued once the memory has been given up: late, and as early as it can be. Copies are placed by what must be there
// last. `plan` can be carried out as it is, and so can the result. Throws UsageError where the machine lacks a tier of
// the plan, or a way to it.
MemoryPlan issued_latest_safe(MemoryPlan plan, const StepProfile& profile);

}  // namespace memwall
