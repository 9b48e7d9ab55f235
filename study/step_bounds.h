// How far a step's time moves when all durations that were carried over or modelled are short, or long.
//
// The interval along the critical path (traces/run/analysis/step_interval.h) holds as long as the path stays where it
// is, and says nothing where the host decides. Two more runs do: each duration with a known error at both ends of its
// interval, all together, so that errors count as common to all ops (the cautious case).
#pragma once

#include <functional>

#include "sim/trace/shared_trace.h"
#include "traces/run/run.h"

namespace memwall {

// {} where the path's own interval is good enough, no op has an error, or a pager decides. `run_again`: as `run` was,
// not recorded.
StepBounds step_bounds(const Run& run, const std::function<Run(SharedTrace)>& run_again);

}  // namespace memwall
