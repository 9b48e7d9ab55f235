// One clock and one order for the events of a capture, whatever file they come from.
// Internal to the readers of captures.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "models/workload/import/timed/timed_capture.h"

namespace memwall {

// Which times were met. Sums of picoseconds must fit 63 bits, so windows are bounded.
struct CaptureTimeRange {
  std::int64_t first_ns = std::numeric_limits<std::int64_t>::max(), last_ns = std::numeric_limits<std::int64_t>::min();
  double busy_ns = 0;  // of all calls and device work

  void see(std::int64_t ns);
  // A sentence on what does not fit, or "".
  std::string problem() const;
};

inline constexpr std::int64_t kLongestWindow = 864'000'000'000'000;  // ns, 10 days

// Subtracts the first time, turns nanoseconds into picoseconds, sorts as TimedCapture promises and finds the parents
// of spans. REQUIRES: times of the capture are nanoseconds, all seen by `span`, which has no problem.
void order_events(TimedCapture& capture, const CaptureTimeRange& span);

}  // namespace memwall
