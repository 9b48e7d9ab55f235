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

void require_countable_times(const Trace& trace) {
  Duration constant = longest(trace.constants);
  for (const Rank& rank : trace.rank_table) constant = std::max(constant, longest(rank.constants));
  // In doubles: they cannot overflow, and nobody needs the last digit.
  double total = 0;
  Duration longest_op{};
  for (const Op& op : trace.ops) {
    total += to_seconds(op.host_gap) + to_seconds(op.host_cost) + to_seconds(op.return_delay) + to_seconds(op.duration);
    longest_op = std::max(longest_op, op.duration);
  }
  total += static_cast<double>(trace.ops.size()) * to_seconds(constant);
  if (total < to_seconds(kLongestTime)) return;
  throw UsageError("Step '" + trace.name + "': the times of its " + std::to_string(trace.ops.size()) +
                   " ops add up to " + seconds_text(total) + ", the longest op takes " +
                   seconds_text(to_seconds(longest_op)) + "; expected less than " +
                   seconds_text(to_seconds(kLongestTime)) +
                   " (53 days, counted in picoseconds): simulate fewer steps (--steps), scale less (--scale), or look "
                   "for a bandwidth of the machine that is too small.");
}

}  // namespace memwall
