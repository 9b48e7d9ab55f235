// A stretch of simulated time.
#pragma once

#include <algorithm>

#include "sim/units.h"

namespace memwall::gui {

// [begin, end]. REQUIRES: begin <= end.
struct TimeRange {
  Time begin{}, end{};
  Duration length() const { return end - begin; }
  bool contains(Time time) const { return begin <= time && time <= end; }
  bool overlaps(Time from, Time to) const { return from <= end && to >= begin; }
  bool operator==(const TimeRange&) const = default;
};

// In either order, as a mouse drags.
inline TimeRange range_between(Time a, Time b) { return {std::min(a, b), std::max(a, b)}; }

}  // namespace memwall::gui
