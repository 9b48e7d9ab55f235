// A job of many GPUs, ready to be written down: which rank has which part of the model, and the sizes that follow.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/workload/generate/configuration/model.h"
#include "models/workload/generate/configuration/recipe.h"
#include "models/workload/generate/parallel/pipeline_order.h"
#include "models/workload/generate/parallel/rank_layout.h"
#include "models/workload/generate/parallel/stage_layers.h"

namespace memwall {

// Is the model divided, or a setting given that only a divided one has?
bool is_parallel(const Recipe& recipe);

// Are parameters divided over data-parallel ranks (FSDP2 under torchtitan's pipeline)?
bool divides_parameters(const Recipe& recipe);

// Has each parameter states of its own, as torch.optim makes them (torchtitan without a pipeline)? Elsewhere all that a
// rank updates is one flat tensor.
bool updates_each_parameter(const Recipe& recipe);

// `batch` is of one pass, `accumulation` the passes of a step: what `micro_batch` and `global_batch` come to.
// Throws UsageError where they do not divide.
Recipe with_passes(Recipe recipe);

struct ParallelJob {
  Model model;    // the vocabulary padded so that tensor-parallel ranks divide it
  Recipe recipe;  // with_passes
  std::vector<StageLayers> stages;
  PipelineShape pipeline;
  RankGrid grid;
  std::vector<std::string> notes;
  std::string name{};                  // of this job among those that share programs; "": nobody does
  std::int64_t step_microbatches = 0;  // of which the pipeline's are the first ones; 0: those are all

  std::uint32_t world() const { return grid.ranks(); }
  std::int64_t tensor() const { return recipe.parallel.tensor; }
  std::int64_t data() const { return recipe.data_parallel; }
  // The number in the job of the rank at this place of the first pipeline.
  std::uint32_t number(std::int64_t pipeline_rank) const;
  // The numbers of the ranks that it stands for: those of its stage that run the same program.
  std::vector<std::uint32_t> folded_ranks(std::int64_t pipeline_rank) const;
};

// Throws UsageError with what the framework refuses (../shared/spec/parallelism.md, 7.2), and what is not implemented.
ParallelJob parallel_job(const Model& model, const Recipe& recipe);

}  // namespace memwall
