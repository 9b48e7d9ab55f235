#include "study/layout/folded_trace.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "sim/trace/ranks.h"

namespace memwall {
namespace {

using RankCosts = std::vector<const ChunkCosts*>;  // by chunk

// Times that were found stand in for what pricing makes of the folded ops.
void set_times(Trace& trace, std::size_t offset, const std::vector<PassPlace>& places, const RankCosts& costs) {
  for (const PassPlace& place : places) {
    if (!place.folded) continue;
    const ChunkCosts& chunk = *costs[static_cast<std::size_t>(place.pass.chunk)];
    const PassTime& time = place.pass.backward ? chunk.backward : chunk.forward;
    Op& kernel = trace.ops[offset + place.begin];
    kernel.duration = time.device - time.tail;
    kernel.host_gap = Duration{};
    kernel.host_cost = time.to_launch;
    Op& host = trace.ops[offset + place.host];
    host.duration = time.host - time.to_launch;
    host.host_gap = host.host_cost = Duration{};
    if (place.tail == kNoOp) continue;
    Op& tail = trace.ops[offset + place.tail];
    tail.duration = time.tail;
    tail.host_gap = tail.host_cost = Duration{};
  }
}

// What is written out beside folded passes calls the allocator, too, though nothing is allocated in the trace.
void add_allocator_calls(Trace& trace, std::size_t offset, const std::vector<Tape::AllocatorCalls>& calls,
                         Duration each) {
  for (const auto& [before, count] : calls) trace.ops[offset + before].host_gap += count * each;
}

// Programs of one rank of the pipeline follow each other, and the first has its number. `sizes`: ops of each rank's.
std::vector<FoldedTrace::Program> programs_of(const Trace& trace, const ParallelJob& job,
                                              const std::vector<std::size_t>& sizes) {
  std::vector<FoldedTrace::Program> programs;
  std::size_t first = 0;
  for (const Rank& rank : trace.rank_table) {
    const std::size_t next = programs.empty() ? 0 : programs.back().rank + 1;
    const bool is_next = next < sizes.size() && rank.number == job.number(static_cast<std::int64_t>(next));
    programs.push_back({is_next ? next : programs.back().rank, first});
    first += sizes[programs.back().rank];
  }
  return programs;
}

FoldedPrograms folded_programs(const ParallelJob& job, const std::vector<RankCosts>& costs) {
  FoldedPrograms folded;
  std::vector<RankProgram> programs;
  for (std::int64_t rank = 0; rank < job.pipeline.ranks; ++rank) {
    std::vector<FoldedChunk> chunks;
    for (const ChunkCosts* chunk : costs[static_cast<std::size_t>(rank)]) chunks.push_back(chunk->memory);
    StageTrace stage = StageProgram(job, rank).write(std::move(chunks));
    folded.passes.push_back(std::move(stage.passes));
    folded.peaks.push_back(stage.peak);
    folded.calls.push_back(std::move(stage.allocator_calls));
    folded.sizes.push_back(stage.trace.ops.size());
    programs.push_back({job.number(rank), std::move(stage.trace), job.folded_ranks(rank)});
  }
  folded.joined = joined_ranks(std::move(programs));
  return folded;
}

// Of all that the programs depend on; of times that is whether a pass has a tail.
std::string programs_key(const ParallelJob& job, const std::string& name, const std::vector<RankCosts>& costs) {
  std::string key = fmt::format("{} {}:", job.pipeline.microbatches, name);
  for (const RankCosts& rank : costs)
    for (const ChunkCosts* chunk : rank)
      for (const FoldedPass* pass : {&chunk->memory.forward, &chunk->memory.first_backward, &chunk->memory.backward})
        key += pass->has_tail ? '1' : '0';
  return key;
}

}  // namespace

FoldedTrace folded_trace(const ParallelJob& whole, ChunkCostCache& cache, std::int64_t microbatches) {
  ParallelJob job = whole;
  job.recipe.accumulation = job.pipeline.microbatches = microbatches;
  job.step_microbatches = whole.pipeline.microbatches;
  std::vector<RankCosts> costs;
  for (std::int64_t rank = 0; rank < job.pipeline.ranks; ++rank) {
    costs.emplace_back();
    for (std::int64_t chunk = 0; chunk < job.pipeline.chunks; ++chunk)
      costs.back().push_back(&cache.of(whole, rank, chunk));
  }
  FoldedPrograms written;
  if (whole.name.empty())
    written = folded_programs(job, costs);
  else
    written = *cache.programs().folded().get(programs_key(job, whole.name, costs),
                                             [&] { return folded_programs(job, costs); });
  FoldedTrace folded{.trace = cache.pricing().priced(std::move(written.joined)),
                     .passes = std::move(written.passes),
                     .peaks = std::move(written.peaks),
                     .programs = {}};
  folded.programs = programs_of(folded.trace, job, written.sizes);
  const Duration each = cache.pricing().allocator_call();
  for (const FoldedTrace::Program& p : folded.programs) {
    add_allocator_calls(folded.trace, p.first, written.calls[p.rank], each);
    set_times(folded.trace, p.first, folded.passes[p.rank], costs[p.rank]);
  }
  return folded;
}

}  // namespace memwall
