// A trace with its durations multiplied: the quickest what-if, and the control
// that shows whether a replay simulates or merely repeats.
#pragma once

#include "sim/trace.h"

namespace memwall {

struct ScaleFactors {
  double kernels = 1;  // kernels, memsets and collectives (all that runs on multiprocessors)
  double copies = 1;   // copies and storage I/O
  double host = 1;     // host gaps, host costs of calls and host work; not waiting
};

// Durations round to the nearest picosecond. REQUIRES: factors are finite and >= 0.
Trace scaled(Trace trace, const ScaleFactors& factors);

}  // namespace memwall
