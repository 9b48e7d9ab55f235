#include "sim/trace/time_check.h"

#include <algorithm>
#include <cstdio>

#include "sim/error.h"

namespace memwall {
namespace {

Duration longest(const ReplayConstants& c) {
  Duration latency{}, gap = c.graph_gap;
  for (const Duration d : c.launch_latency) latency = std::max(latency, d);
  for (const auto& row : c.stream_gap)
    for (const Duration d : row) gap = std::max(gap, d);
  return std::min(latency, kLongestTime / 4) + std::min(gap, kLongestTime / 4) +
         std::min(std::max(c.event_latency, Duration{}), kLongestTime / 4);
}

std::string seconds_text(double seconds) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.4g s", seconds);
  return text;
}

}  // namespace

void TimeSum::require_countable(const Trace& trace) const {
  Duration constant = longest(trace.constants);
  for (const Rank& rank : trace.rank_table) constant = std::max(constant, longest(rank.constants));
  // In doubles: they cannot overflow, and nobody needs the last digit.
  const double ops = 8 * (static_cast<double>(high_) * 0x1p32 + static_cast<double>(low_)) * 1e-12;
  const double total = ops + static_cast<double>(trace.ops.size()) * to_seconds(constant);
  if (total < to_seconds(kLongestTime)) return;
  Duration longest_op{};
  for (const Op& op : trace.ops) longest_op = std::max(longest_op, op.duration);
  throw UsageError("Step '" + trace.name + "': the times of its " + std::to_string(trace.ops.size()) +
                   " ops add up to " + seconds_text(total) + ", the longest op takes " +
                   seconds_text(to_seconds(longest_op)) + "; expected less than " +
                   seconds_text(to_seconds(kLongestTime)) +
                   " (53 days, counted in picoseconds): simulate fewer steps (--steps), scale less (--scale), or look "
                   "for a bandwidth of the machine that is too small.");
}

void require_countable_times(const Trace& trace) {
  TimeSum sum;
  for (const Op& op : trace.ops) sum.add(op);
  sum.require_countable(trace);
}

}  // namespace memwall
