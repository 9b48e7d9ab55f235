// A few passes of one chunk of a pipeline, one after the other, as a step that can be simulated. Internal to
// study/layout.
#pragma once

#include <cstdint>
#include <vector>

#include "models/workload/generate/parallel/stage_program.h"
#include "study/layout/job_pricing.h"

namespace memwall {

// The first finds allocators and gradients empty, the last is one of many.
inline constexpr std::int64_t kChunkPasses = 3;

struct ChunkStep {
  Trace trace;  // priced; of ranks in unequal places there are several programs, the first is `passes`'
  std::vector<PassPlace> passes;

  // The last three passes: backward, and forward and backward of the last micro-batch.
  const PassPlace& backward_before() const { return passes[passes.size() - 3]; }
  const PassPlace& forward() const { return passes[passes.size() - 2]; }
  const PassPlace& backward() const { return passes.back(); }
};

// kChunkPasses times forward and backward. `drained`: the host waits for the device before each. Throws what generators
// and pricing throw.
ChunkStep chunk_step(const ParallelJob& job, std::int64_t rank, std::int64_t chunk, const JobPricing& pricing,
                     bool drained);
// Of the chunk's program, so often its two passes.
ChunkStep chunk_step(const ParallelJob& job, std::int64_t rank, StageTrace alone, const JobPricing& pricing);

// The same without any time of the host: what the device does where the host is far ahead.
Trace without_host(Trace trace);

}  // namespace memwall
