// What a person wants to know of an execution, in a few lines.
#pragma once

#include <string>

#include "validate/replay/execution.h"

namespace memwall {

// "12 stand-ins for collectives of 8 ranks" of a schedule that has collectives, else "".
std::string stand_ins(const Trace& schedule);

// Total (median and spread of the passes), device time by phase, bytes and rate by direction, peaks, what was
// checked. REQUIRES: `execution` is of this schedule.
std::string execution_summary(const Trace& schedule, const Execution& execution);

}  // namespace memwall
