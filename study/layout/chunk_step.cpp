#include "study/layout/chunk_step.h"

#include <utility>

#include "sim/trace/ranks.h"

namespace memwall {

ChunkStep chunk_program(const ParallelJob& job, std::int64_t rank, std::int64_t chunk, bool drained) {
  StageTrace alone = StageProgram(job, rank).write_chunk(chunk, kChunkPasses, drained);
  std::vector<RankProgram> programs;
  programs.push_back({job.number(rank), std::move(alone.trace), job.folded_ranks(rank)});
  return {joined_ranks(std::move(programs)), std::move(alone.passes)};
}

ChunkStep priced(ChunkStep program, const JobPricing& pricing) {
  return {pricing.priced(std::move(program.trace)), std::move(program.passes)};
}

Trace without_host(Trace trace) {
  for (Op& op : trace.ops) {
    op.host_gap = op.host_cost = op.return_delay = Duration{};
    if (op.kind == OpKind::host_work) op.duration = Duration{};
  }
  return trace;
}

}  // namespace memwall
