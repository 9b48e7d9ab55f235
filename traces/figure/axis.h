// Axes: where the ticks stand, in which unit, and how a value becomes a place.
#pragma once

#include <string>
#include <vector>

#include "sim/byte_units.h"
#include "sim/duration_sum.h"
#include "sim/units.h"

namespace memwall {

// Maps [low, high] onto [from, to], linearly; beyond the ends too. An empty range maps to `from`.
struct Scale {
  double low = 0, high = 1, from = 0, to = 1;
  double operator()(double value) const {
    return high > low ? from + (value - low) / (high - low) * (to - from) : from;
  }
};

// Maps [low, high] onto [from, to], equal factors onto equal lengths. REQUIRES: 0 < low < high; value > 0.
struct LogScale {
  double low = 1, high = 10, from = 0, to = 1;
  double operator()(double value) const;
};

// The powers of ten within [low, high], ascending. REQUIRES: 0 < low <= high.
std::vector<double> decade_ticks(double low, double high);

// The unit that keeps the numbers of an axis short: value / factor is what is printed.
ScaledUnit time_unit(double largest_seconds);  // s, ms, us or ns
ScaledUnit byte_unit(double largest);          // B to TB, by powers of 1000; of rates too

// Multiples of 1, 2 or 5 times a power of ten within [low, high], at most `most` of them, ascending.
// Exactly rounded multiples, so that they print short. REQUIRES: low <= high, most >= 2.
std::vector<double> nice_ticks(double low, double high, int most);
// The distance between ticks that divide `range` into at most `most` parts. REQUIRES: most >= 1.
double nice_step(double range, int most);

// A tick's number with as many decimals as `step` needs, thousands grouped by thin spaces.
std::string format_tick(double value, double step);

// A power of ten for a tick: "0.01", "100", "10 k", "1 T".
std::string format_decade(double value);

// For people: three significant digits and a unit: "12.3 ms", "39.3 GB", "1.6 TB/s".
std::string format_time(Duration time);
std::string format_time(const DurationSum& sum);
std::string format_bytes(double bytes);
inline std::string format_bytes(Bytes bytes) { return format_bytes(static_cast<double>(bytes)); }
inline std::string format_rate(double bytes_per_second) { return format_bytes(bytes_per_second) + "/s"; }

}  // namespace memwall
