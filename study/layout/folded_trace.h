// The program of a job with each pass as one kernel, as folded_job() simulates it. Internal to study/layout.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "study/layout/folded_job.h"

namespace memwall {

struct FoldedTrace {
  // Of a program in the trace: the rank of the pipeline whose it is, and its first op.
  struct Program {
    std::size_t rank = 0, first = 0;
  };
  Trace trace;                                 // all times known; nothing is allocated in it
  std::vector<std::vector<PassPlace>> passes;  // by rank of the pipeline; ops counted from the program's first
  std::vector<StagePeak> peaks;                // likewise
  // In the order of the trace. There are several of one rank of the pipeline where those for which it stands are in
  // unequal places of the machine.
  std::vector<Program> programs;
};

// Of its first `microbatches` micro-batches. Throws what generators and pricing throw.
FoldedTrace folded_trace(const ParallelJob& job, ChunkCostCache& costs, std::int64_t microbatches);

}  // namespace memwall
