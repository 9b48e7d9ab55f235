// How the clock of one rank's capture runs against that of another.
//
// Ranks of one host share a clock: ends of their collectives agree within 1 to 7 us (measured on DLRM, 8 V100). Clocks
// of several hosts differ by an offset and, seen over long windows, drift: they are told by the ends of collectives
// that end on all ranks together.
#pragma once

#include <cstddef>
#include <vector>

#include "sim/units.h"

namespace memwall {

// One collective's end, as two captures have it; each time counts from its own capture's start.
struct EndPair {
  Time reference{}, own{};
};

struct RankClock {
  Duration offset{};  // at `pivot`
  double drift = 0;   // the reference gains so many seconds per second
  Time pivot{};       // on the own clock

  Time on_reference(Time own) const {
    return own + offset + Duration(static_cast<std::int64_t>(drift * static_cast<double>((own - pivot).count())));
  }
};

struct ClockFit {
  RankClock clock;
  std::size_t samples = 0;
  Duration median_error{}, largest_error{};  // of the ends on one clock
};

// Median of the differences, and the median of their slopes (H. Theil 1950, P. K. Sen 1968) where the drift is more
// than 20 us over the window, at most 1000 ppm, and halves the median error. Robust: up to half of the pairs of the
// first, 29 % of the second may be wrong. REQUIRES: `ends` is not empty; times are less than 2^60.
ClockFit fit_clock(std::vector<EndPair> ends);

}  // namespace memwall
