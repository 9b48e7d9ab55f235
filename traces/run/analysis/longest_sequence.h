// How a recipe says that nobody chose its sequence length.
#pragma once

namespace memwall {

// The end of the value of the item "batch" (RecipeItem): "1 x 131072 tokens, the longest that the model takes".
inline constexpr const char* kLongestSequence = "the longest that the model takes";

}  // namespace memwall
