// How often a step comes by the host's clock, and by the GPU's: which of the two a step's time hangs on.
#pragma once

#include "traces/run/run.h"

namespace memwall {

// Means over the steps of all ranks.
struct StepPeriods {
  // From the boundary of a rank's first step to where its threads have issued the last, waits for the GPU included.
  Duration host{};
  // From where a rank's GPU begins with the work of its first step (behind what it still had to do of the steps before
  // the capture) to where it has done that of the last, idle times between included. 0 without such work.
  Duration gpu{};
};

StepPeriods step_periods(const Run& run);

}  // namespace memwall
