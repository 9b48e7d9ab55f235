// The program of one rank of a parallel job: forward and backward passes of its chunks in the order of the schedule,
// messages between them, and the end of the step.
#pragma once

#include <cstdint>

#include "models/workload/generate/parallel/parallel_job.h"
#include "sim/trace/trace.h"

namespace memwall {

// Of the rank at this place of the first pipeline, which stands for all of its tensor- and data-parallel group.
// Throws what the generators throw. REQUIRES: rank < job.pipeline.ranks.
Trace stage_program(const ParallelJob& job, std::int64_t rank);

}  // namespace memwall
