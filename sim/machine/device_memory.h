// What a machine's GPU has for a step.
#pragma once

#include "sim/machine/machine.h"
#include "sim/trace/trace.h"

namespace memwall {

// All that it holds beside what is there before the step and is no storage of it. Throws UsageError where the machine
// has no memory "hbm".
Bytes device_bytes_for(const Trace& trace, const Machine& machine);

}  // namespace memwall
