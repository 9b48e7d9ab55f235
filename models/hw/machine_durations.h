// What the durations of a machine may be: only what is counted from the end of a call can be negative
// (the launch latency and the return from a synchronize: work may start, or be seen to end, before the call does).
#pragma once

#include <string>

#include "sim/machine/machine.h"

namespace memwall {

// The first duration that is negative and may not be, as a sentence without its end, or "".
std::string negative_duration(const Machine& machine);

}  // namespace memwall
