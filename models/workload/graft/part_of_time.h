// A measured time shared among several ops by weights.
#pragma once

#include <cstdint>

#include "sim/units.h"

namespace memwall {

// The share of `whole` of those whose weights lie between the sums `before` and `behind`, of `all`: rounded down at
// both sums, so that the shares of neighbours add up to the whole. REQUIRES: 0 <= before <= behind <= all, all > 0.
inline Duration part_of_time(Duration whole, std::int64_t before, std::int64_t behind, std::int64_t all) {
  __extension__ using Wide = __int128;  // products of two times
  const auto until = [&](Wide sum) { return static_cast<std::int64_t>(sum * whole.count() / all); };
  return Duration(until(behind) - until(before));
}

}  // namespace memwall
