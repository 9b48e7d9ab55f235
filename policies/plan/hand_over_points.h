// Where a plan's points stand beside a hand-over between host threads.
//
// Right before a hand-over the thread that takes over is beside the one that still works: what is put there has no
// order to what that does. It goes behind the hand-over, in the order in which it stood. What is put right behind the
// op that a hand-over waits for needs no care: the other thread waits for that, too (policies/trace/trace_edit.h).
#pragma once

#include "sim/policy/memory_plan.h"
#include "sim/trace/trace.h"

namespace memwall {

// The same plan with such points moved. Points that name no op of the trace stay.
MemoryPlan behind_hand_overs(MemoryPlan plan, const Trace& trace);

}  // namespace memwall
