// What a divided job's programs are before they have times, which no number of a machine changes: kept, so that a job
// that is asked of on many machines is generated once. For several threads.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "models/workload/generate/parallel/stage_program.h"
#include "study/layout/chunk_step.h"
#include "study/shared_values.h"

namespace memwall {

// A job whose passes are one kernel each (folded_trace.h).
struct FoldedPrograms {
  Trace joined;                                // of all ranks, without times
  std::vector<std::vector<PassPlace>> passes;  // by rank of the pipeline, as all below
  std::vector<StagePeak> peaks;
  std::vector<std::vector<Tape::AllocatorCalls>> calls;
  std::vector<std::size_t> sizes;  // ops
};

// Keys say all that the programs depend on.
class ChunkPrograms {
 public:
  // A chunk alone (without times), and what its passes hold.
  SharedValues<ChunkStep>& alone() { return alone_; }
  SharedValues<FoldedChunk>& memory() { return memory_; }
  SharedValues<FoldedPrograms>& folded() { return folded_; }

 private:
  static constexpr std::size_t kMostChunks = 64, kMostJobs = 4;
  SharedValues<ChunkStep> alone_{kMostChunks};
  SharedValues<FoldedChunk> memory_{kMostChunks};
  SharedValues<FoldedPrograms> folded_{kMostJobs};
};

}  // namespace memwall
