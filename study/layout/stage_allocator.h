// What PyTorch's allocator hands out and reserves in one stage of a job, followed call by call without simulating any
// time: a rank calls it in the order of its program. Internal to study/layout.
#pragma once

#include <cstdint>
#include <vector>

#include "models/workload/generate/parallel/pass_events.h"
#include "sim/units.h"

namespace memwall {

// Of the device's memory.
struct ReservedStage {
  Bytes reserved = 0, allocated = 0;  // at most; each at its own highest instant
  Bytes missing = 0;                  // 0: it fits
};

struct StageAllocation {
  ReservedStage stage;
  // Micro-batches behind which all blocks lie again as they did before them, with the same places in the schedule in
  // them: so many more of them change nothing. 0: none were found. Small and large blocks, which share no memory, are
  // looked at apart while every request is served.
  std::int64_t cycle = 0;
};

// `program`: StageProgram::write_marked; `chunks`: events of its chunks' passes, by chunk. `period`: micro-batches
// behind which the schedule repeats, where a cycle is looked for; 0: it is not. `capacity`: of the device for the step.
// REQUIRES: each pass that is marked has events.
StageAllocation allocated_stage(const StageTrace& program, const std::vector<const ChunkEvents*>& chunks,
                                std::int64_t period, Bytes capacity);

}  // namespace memwall
