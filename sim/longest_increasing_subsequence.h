// A longest chain of numbers that ascends: of pairs between two sequences, those that keep their order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace memwall {

// Places in `values`, ascending, of a longest strictly ascending chain of them (patience sorting; n log n). Of chains
// of one length, the one that ends lowest.
std::vector<std::size_t> longest_increasing_subsequence(std::span<const std::uint32_t> values);

}  // namespace memwall
