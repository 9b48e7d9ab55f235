// What keeping some values of a forward means as a memory plan: the others are dropped behind their last use in forward
// and made again right before the first op of backward that reads them.
#pragma once

#include <string>

#include "policies/planners/forward_graph.h"
#include "policies/planners/minimum_cut.h"
#include "policies/profile/step_profile.h"
#include "sim/policy/memory_plan.h"

namespace memwall {

// Adds that to `plan`. What is made again stays until its last use, by the program or by a re-run, unless the program
// gives it back before; what is kept and a re-run starts from lives until then. A storage stays where a re-run for it
// would need what cannot be made again.
void keep_saved_values(const StepProfile& profile, const ForwardGraph& graph, const ValueCut& cut, MemoryPlan& plan);

// A planner's remark: what a compiler would do with what runs again, and the simulation does not. "" where nothing
// does.
std::string unmerged_reruns(const StepProfile& profile, const MemoryPlan& plan);

}  // namespace memwall
