// The part of a memory plan that PyTorch executes exactly, with checkpointed modules, operators that are run again, and
// one pair of saved-tensor hooks (sim/policy/plan_realization.h): what is simulated then is what a program does.
#pragma once

#include "policies/trace/dataflow.h"
#include "sim/policy/plan_restriction.h"
#include "sim/trace/trace.h"

namespace memwall {

// Points move to where hooks run: a copy to where the storage is saved, a drop to the next save or the end of forward,
// a fetch to the beginning of the node of backward before it. What has no name, or is not a hook's, is left out; so is,
// of what is run again, an operator that only writes what lived before the step (the counter of batch normalization).
// Such a plan is its own. A pure function. REQUIRES: the plan can be carried out (check_plan), no fetch says
// `latest_safe`.
RestrictedPlan executable_plan(MemoryPlan plan, const Trace& trace, const Dataflow& flow);

}  // namespace memwall
