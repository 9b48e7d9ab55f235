// What a person wants to know of an execution, in a few lines.
#pragma once

#include <string>

#include "validate/replay/execution.h"

namespace memwall {

// Total (median and spread of the passes), device time by phase, bytes and rate by direction, peaks, what was
// checked. REQUIRES: `execution` is of this schedule.
std::string execution_summary(const Trace& schedule, const Execution& execution);

}  // namespace memwall
