// All steps of a run, as seen by all ranks of its trace.
#pragma once

#include "traces/run/run.h"

namespace memwall {

struct RunPeriod {
  Time begin{}, end{};
  double steps = 1;  // of one rank
  double seconds_per_step() const { return to_seconds(end - begin) / steps; }
};

// From the first boundary of any rank to the end of the last step of any; what a GPU still did of the steps before is
// left out, as in step_windows().
RunPeriod run_period(const Run& run);

}  // namespace memwall
