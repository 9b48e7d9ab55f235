// Where a plan's points stand beside a hand-over between host threads.
//
// Right before a hand-over, and right behind the op that it waits for, two threads run beside each other: what is put
// there has no order to what the other does. All of it goes behind the hand-over, in the order in which it stood.
#pragma once

#include "sim/policy/memory_plan.h"
#include "sim/trace/trace.h"

namespace memwall {

// The same plan with such points moved. Points that name no op of the trace stay.
MemoryPlan behind_hand_overs(MemoryPlan plan, const Trace& trace);

}  // namespace memwall
