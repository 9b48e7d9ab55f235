// What a captured step shows of how it was trained: only what its ops say, nothing guessed. Internal to study/.
#pragma once

#include <vector>

#include "sim/trace/trace.h"

namespace memwall {

// The types of its matrix products and attention, the optimizer by name, the kernel of attention, recomputation,
// compiled or eager, samples and tokens of a step; what it does not show is absent.
std::vector<RecipeItem> captured_recipe(const Trace& trace);

}  // namespace memwall
