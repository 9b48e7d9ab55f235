#include "sim/longest_increasing_subsequence.h"

#include <algorithm>

namespace memwall {

std::vector<std::size_t> longest_increasing_subsequence(std::span<const std::uint32_t> values) {
  // tail[n]: where the lowest chain of n + 1 values ends; before[i]: the place before i in the chain that ends at i.
  std::vector<std::size_t> tail, before(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto place = std::lower_bound(tail.begin(), tail.end(), values[i],
                                        [&](std::size_t t, std::uint32_t value) { return values[t] < value; });
    before[i] = place == tail.begin() ? values.size() : *(place - 1);
    if (place == tail.end())
      tail.push_back(i);
    else
      *place = i;
  }
  std::vector<std::size_t> chain;
  for (std::size_t i = tail.empty() ? values.size() : tail.back(); i < values.size(); i = before[i]) chain.push_back(i);
  std::reverse(chain.begin(), chain.end());
  return chain;
}

}  // namespace memwall
