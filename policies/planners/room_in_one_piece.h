// Where a block finds no place in one piece though enough bytes are free: what else has to leave for it.
//
// PyTorch's allocator gives a segment back to the device only once nothing of it is in use. A plan that moves a large
// storage out gains nothing for a still larger block as long as a small one next to it stays.
#pragma once

#include <optional>

#include "policies/profile/plan_estimate.h"
#include "sim/policy/memory_plan.h"

namespace memwall {

// The plan in which the storages that hold segments leave, too, right before the first block that found no place: of
// the segments that are used least, as many as the block needs. They come back before they are used next. `simulated`:
// of the plan, on `machine`, with the allocator. `spare`: so many bytes of segments more go back, for what comes behind.
// Nothing where the first request refused is none of the program's own,
// where what is in its way cannot leave there (it is used by then, the plan decides about it, or it is no storage of
// the step), or where the allocator is not PyTorch's with segments of fixed size.
std::optional<MemoryPlan> with_room_in_one_piece(const MemoryPlan& plan, const SimulatedPlan& simulated,
                                                 const StepProfile& profile, const Machine& machine,
                                                 const PlanAllocator& allocator = {}, Bytes spare = 0);

}  // namespace memwall
