// What of a cycle's storages has to be on the device or in a gap, whoever plans. Internal to policies/cycle.
#pragma once

#include <vector>

#include "policies/cycle/step_cycle.h"

namespace memwall {

// By slot: bytes of storages that live in it, but for those that a plan may do without for nothing, though the cycle
// has no gap there: what nothing touches, and what is there before its first touch. What the cycle does not move, as
// another stream writes it, other plans may: it counts only where it is touched. Of each what a copy carries, not what
// the allocator holds: the least that any plan has to move.
std::vector<Bytes> needed_bytes(const StepCycle& cycle);

}  // namespace memwall
