// A training step of a job whose model is divided over many GPUs, as one trace: the program of each rank of a pipeline,
// which stands for its tensor-parallel and data-parallel group (../shared/spec/parallelism.md, section 9: these ranks
// are equal, stages never are).
#pragma once

#include "models/workload/generate/configuration/model.h"
#include "models/workload/generate/configuration/recipe.h"
#include "sim/trace/trace.h"

namespace memwall {

// Throws UsageError as parallel_job() does.
Trace parallel_step(const Model& model, const Recipe& recipe);

}  // namespace memwall
