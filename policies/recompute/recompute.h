// What a plan of recomputation is as a memory plan: units that are dropped after their last use in forward and re-run
// before backward needs them.
#pragma once

#include "policies/recompute/recompute_plan.h"
#include "policies/trace/dataflow.h"
#include "sim/policy/memory_plan.h"
#include "sim/trace/trace.h"

namespace memwall {

// REQUIRES: `plan` was made for `trace` and `flow`.
MemoryPlan memory_plan_of(const Trace& trace, const Dataflow& flow, const RecomputePlan& plan);

}  // namespace memwall
