// What is known of how a step is trained, for people.
#pragma once

#include <string>
#include <vector>

#include "cli/print/table.h"
#include "sim/trace/trace.h"

namespace memwall {

// "recipe: pure bf16 (precision=bf16), flash attention (attention=flash)"; where it is assumed, how to change it.
std::string recipe_text(const std::vector<RecipeItem>& recipe);

// One row for each item, with the setting that changes it.
Table recipe_table(const std::vector<RecipeItem>& recipe);

}  // namespace memwall
