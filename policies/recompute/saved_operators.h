// Operators whose results selective checkpointing keeps, by the words of its parameter `save`.
#pragma once

#include <string>
#include <vector>

namespace memwall {

// Two words stand for families: "mm" for every operator that is a matrix product, "sdpa" for every kernel of
// scaled_dot_product_attention. Any other word is a pattern of operators itself (policies/trace/segments.h).
bool is_family(const std::string& word);
std::vector<std::string> patterns_of(const std::vector<std::string>& save);

}  // namespace memwall
