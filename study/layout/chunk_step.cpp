#include "study/layout/chunk_step.h"

#include <utility>

#include "sim/trace/ranks.h"

namespace memwall {

ChunkStep chunk_step(const ParallelJob& job, std::int64_t rank, std::int64_t chunk, const JobPricing& pricing,
                     bool drained) {
  return chunk_step(job, rank, StageProgram(job, rank).write_chunk(chunk, kChunkPasses, drained), pricing);
}

ChunkStep chunk_step(const ParallelJob& job, std::int64_t rank, StageTrace alone, const JobPricing& pricing) {
  std::vector<RankProgram> programs;
  programs.push_back({job.number(rank), std::move(alone.trace), job.folded_ranks(rank)});
  return {pricing.priced(joined_ranks(std::move(programs))), std::move(alone.passes)};
}

Trace without_host(Trace trace) {
  for (Op& op : trace.ops) {
    op.host_gap = op.host_cost = op.return_delay = Duration{};
    if (op.kind == OpKind::host_work) op.duration = Duration{};
  }
  return trace;
}

}  // namespace memwall
