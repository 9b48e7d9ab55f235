// Plans as the events of a turn, for the checker of turn_replay.h.
#pragma once

#include "policies/cycle/move_plan.h"
#include "policies/profile/step_profile.h"
#include "sim/policy/memory_plan.h"
#include "tests/support/turn_replay.h"

namespace memwall {

// From the slots, storages and touches of the cycle; of its gaps only which storage a move is of, and where its touch
// behind stands.
Turn turn_of(const StepCycle& cycle, const MovePlan& plan);

// From the ops of the trace and the points of the plan. REQUIRES: one stream, no time of the host: ops on the device
// run one right after the other.
Turn turn_of(const StepProfile& profile, const MemoryPlan& plan);

}  // namespace memwall
