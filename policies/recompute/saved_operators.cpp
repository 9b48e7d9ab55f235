#include "policies/recompute/saved_operators.h"

namespace memwall {

bool is_family(const std::string& word) { return word == "mm" || word == "sdpa"; }

std::vector<std::string> patterns_of(const std::vector<std::string>& save) {
  std::vector<std::string> patterns;
  for (const std::string& word : save) {
    if (word == "mm")
      patterns.insert(patterns.end(), {"mm", "addmm", "bmm", "baddbmm", "scaled_mm", "int_mm", "linear"});
    else if (word == "sdpa")
      patterns.insert(patterns.end(), {"scaled_dot_product_*"});
    else
      patterns.push_back(word);
  }
  return patterns;
}

}  // namespace memwall
