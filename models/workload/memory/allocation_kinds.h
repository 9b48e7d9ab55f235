// What each allocation is for, concluded from the frames it was made in and from its life. The rules are in
// docs/memory.md. Internal to the memory study.
#pragma once

#include "models/workload/memory/allocations.h"
#include "models/workload/memory/event_phases.h"
#include "models/workload/memory/phase_intervals.h"

namespace memwall {

// Sets Allocation::kind of every allocation of `table`, whose lives and phases are known; adds notes.
void find_kinds(AllocationTable& table, const std::vector<StackFacts>& facts, const EventPhases& events,
                const PhaseIntervals& runs);

}  // namespace memwall
