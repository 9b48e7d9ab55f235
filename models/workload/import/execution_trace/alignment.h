// Two sequences, and what they have in common in order.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace memwall {

using Alignment = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

// A longest common subsequence of `a` and `b`: pairs of positions with equal values, ascending in
// both. Takes (|a| + |b|) * D steps and linear space, where D is the number of elements without a
// partner (E. Myers, An O(ND) Difference Algorithm and Its Variations, Algorithmica 1, 1986).
// Nothing if D exceeds `most_unmatched`. REQUIRES: both are shorter than 2^31 / 4.
std::optional<Alignment> align(std::span<const std::uint32_t> a, std::span<const std::uint32_t> b,
                               std::uint32_t most_unmatched);

}  // namespace memwall
