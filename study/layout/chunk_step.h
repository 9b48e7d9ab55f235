// A few passes of one chunk of a pipeline, one after the other, as a step that can be simulated. Internal to
// study/layout.
#pragma once

#include <cstdint>
#include <vector>

#include "models/workload/generate/parallel/stage_program.h"
#include "study/layout/job_pricing.h"

namespace memwall {

// The first finds allocators and gradients empty, the second is one of many: a third takes as long to the picosecond
// (asked of GPT-3, Llama 3 and Mixtral under Megatron-LM and torchtitan).
inline constexpr std::int64_t kChunkPasses = 2;

struct ChunkStep {
  Trace trace;  // of ranks in unequal places there are several programs once it is priced, the first is `passes`'
  std::vector<PassPlace> passes;

  // The last three passes: backward, and forward and backward of the last micro-batch.
  const PassPlace& backward_before() const { return passes[passes.size() - 3]; }
  const PassPlace& forward() const { return passes[passes.size() - 2]; }
  const PassPlace& backward() const { return passes.back(); }
};

// kChunkPasses times forward and backward, without times. `drained`: the host waits for the device before each. Throws
// what generators throw.
ChunkStep chunk_program(const ParallelJob& job, std::int64_t rank, std::int64_t chunk, bool drained);
// With the times of a machine. Throws what pricing throws.
ChunkStep priced(ChunkStep program, const JobPricing& pricing);

// The same without any time of the host: what the device does where the host is far ahead.
Trace without_host(Trace trace);

}  // namespace memwall
