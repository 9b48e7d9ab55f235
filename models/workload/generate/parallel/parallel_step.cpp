#include "models/workload/generate/parallel/parallel_step.h"

#include <functional>
#include <utility>
#include <vector>

#include "models/workload/generate/assumed_recipe.h"
#include "models/workload/generate/parallel/parallel_job.h"
#include "models/workload/generate/parallel/stage_program.h"
#include "sim/side_by_side.h"
#include "sim/trace/ranks.h"

namespace memwall {
namespace {

// Chunk c of rank i is stage c * pipeline + i.
std::vector<PipelineChunk> chunks_of(const ParallelJob& job, std::int64_t rank) {
  std::vector<PipelineChunk> chunks;
  for (std::size_t stage = static_cast<std::size_t>(rank); stage < job.stages.size();
       stage += static_cast<std::size_t>(job.pipeline.ranks)) {
    const StageLayers& layers = job.stages[stage];
    chunks.push_back({static_cast<std::uint32_t>(stage), static_cast<std::uint32_t>(layers.first),
                      static_cast<std::uint32_t>(layers.count), layers.embedding, layers.loss});
  }
  return chunks;
}

}  // namespace

Trace parallel_step(const Model& model, const Recipe& recipe) {
  const ParallelJob job = parallel_job(model, recipe);
  std::vector<RankProgram> programs(static_cast<std::size_t>(job.pipeline.ranks));
  std::vector<std::function<void()>> calls;
  for (std::int64_t rank = 0; rank < job.pipeline.ranks; ++rank)
    calls.emplace_back([&job, &program = programs[static_cast<std::size_t>(rank)], rank] {
      program = {job.number(rank), stage_program(job, rank), job.folded_ranks(rank), chunks_of(job, rank)};
    });
  call_side_by_side(calls);
  Trace trace = joined_ranks(std::move(programs));
  trace.job_ranks = job.world();
  trace.name = job.model.name;
  trace.recipe = assumed_recipe(job.model, job.recipe);
  trace.notes.insert(trace.notes.begin(), job.notes.begin(), job.notes.end());
  return trace;
}

}  // namespace memwall
