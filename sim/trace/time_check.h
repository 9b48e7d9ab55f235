// Can the times of a program be counted?
#pragma once

#include "sim/trace/trace.h"

namespace memwall {

// Throws UsageError if all times of the program together (calls, gaps, work, and for every op the longest latency and
// gap that its constants know) exceed kLongestTime: were they one after the other, the last instant would be no number
// of picoseconds. Contention, which may make a run longer, is watched by the engine.
void require_countable_times(const Trace& trace);

}  // namespace memwall
