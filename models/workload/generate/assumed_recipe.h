// What a generated step assumes of how it is trained, in words, each with the setting that says otherwise.
#pragma once

#include <vector>

#include "models/workload/generate/configuration/model.h"
#include "models/workload/generate/configuration/recipe.h"
#include "sim/trace/trace.h"

namespace memwall {

// Precision first, then optimizer, attention, checkpointing, execution, batch, size of the network; what is out of the
// ordinary last, and only where it is there.
std::vector<RecipeItem> assumed_recipe(const Model& model, const Recipe& recipe);

}  // namespace memwall
