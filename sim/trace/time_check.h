// Can the times of a program be counted?
#pragma once

#include "sim/trace/trace.h"

namespace memwall {

// Adds up all times of a program: calls, gaps, work, and for every op the longest latency and gap that its constants
// know. Were they one after the other, the last instant has to be a number of picoseconds. Contention, which may make a
// run longer, is watched by the engine.
class TimeSum {
 public:
  void add(const Op& op) {
    // An eighth of each, so that four have room in 64 bits; then in two halves, so that 2^32 of these sums have, too.
    const std::int64_t eighths = (op.host_gap.count() >> 3) + (op.host_cost.count() >> 3) +
                                 (op.return_delay.count() >> 3) + (op.duration.count() >> 3);
    high_ += eighths >> 32;
    low_ += static_cast<std::uint64_t>(eighths) & 0xffffffff;
  }
  // Throws UsageError if the sum exceeds kLongestTime. REQUIRES: every op of the trace was added.
  void require_countable(const Trace& trace) const;

 private:
  std::int64_t high_ = 0;
  std::uint64_t low_ = 0;
};

// The same for a whole trace. Throws UsageError.
void require_countable_times(const Trace& trace);

}  // namespace memwall
