// What keeping some values of a forward means as a memory plan: the others are dropped behind their last use in forward
// and made again right before the first op of backward that reads them.
#pragma once

#include "policies/planners/forward_graph.h"
#include "policies/planners/minimum_cut.h"
#include "policies/profile/step_profile.h"
#include "sim/policy/memory_plan.h"

namespace memwall {

// Adds that to `plan`. What is made again stays until its last use, by the program or by a re-run, unless the program
// gives it back before; what is kept and a re-run starts from lives until then. A storage stays where a re-run for it
// would need what cannot be made again.
void keep_saved_values(const StepProfile& profile, const ForwardGraph& graph, const ValueCut& cut, MemoryPlan& plan);

}  // namespace memwall
