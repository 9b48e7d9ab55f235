// Which elements of two sequences of keys belong together: pairs of positions with equal keys.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace memwall {

using Keys = std::span<const std::uint64_t>;
using Alignment = std::vector<std::pair<std::uint32_t, std::uint32_t>>;  // position in the first, in the second

// A longest common subsequence: pairs that ascend in both. Takes (|a| + |b|) * D steps, where D is the number of
// elements without a partner, and memory for 2 * D numbers beside the result (E. Myers, An O(ND) Difference Algorithm
// and Its Variations, Algorithmica 1, 1986). Nothing if D exceeds `most_unmatched`.
// REQUIRES: both are shorter than 2^31 / 4.
std::optional<Alignment> longest_common_subsequence(Keys a, Keys b, std::uint32_t most_unmatched);

// The n-th occurrence of each key in `a` with its n-th in `b`; ascends in `a` only.
Alignment pairs_by_occurrence(Keys a, Keys b);

// A common subsequence, not always a longest one, in n log n steps: what agrees from the front and from the back, and
// between them of the pairs by occurrence a longest chain that ascends in both.
Alignment align_by_occurrence(Keys a, Keys b);

}  // namespace memwall
