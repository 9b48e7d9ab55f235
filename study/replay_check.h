// A step time that is wrong, or means nothing, is not told unasked.
#pragma once

#include <string>

#include "sim/trace/trace.h"

namespace memwall {

// Throws UsageError where the trace is not a replay, or its gaps are over the limit, and nobody asked for it. `step`:
// what to call it.
void require_replay(const std::string& step, const Trace& trace, bool accept_gaps);

}  // namespace memwall
