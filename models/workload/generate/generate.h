// Writes a training step as its framework would have issued it: operators, storages, saved
// activations, and allocations and frees in host order. What stands here must agree with what a
// capture of the same program shows: tests compare the two.
//
// Nothing is measured: FLOPs, bytes, shapes and counts of framework calls are exact where the
// formula is, durations are models/hw's business (`modelled_on`).
#pragma once

#include "models/workload/generate/configuration/model.h"
#include "models/workload/generate/configuration/recipe.h"
#include "sim/trace/trace.h"

namespace memwall {

// One steady step: optimizer states exist. Marks: the step's name, and "loss" where backward begins.
// Throws UsageError naming the setting where model and recipe have no meaning together, or where a
// combination is not implemented.
Trace generate_step(const Model& model, const Recipe& recipe);

}  // namespace memwall
