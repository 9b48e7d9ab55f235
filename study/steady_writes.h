// A step among millions: how long it takes once the write caches of drives hold as much after a step as before it.
//
// A simulated step finds them empty. Where it writes more than the drives empty in its time, they fill from step to
// step (traces/run/analysis/drive_writes.h) until writes fall off; where it does not, the next step may still find what
// the last one left. Either way the run is simulated again from what it would be found with, and from what that leaves,
// until nothing changes: twice, as a cache that is full once in a step forgets how the step began.
#pragma once

#include <functional>
#include <vector>

#include "traces/run/run.h"

namespace memwall {

// The mean step time; 0 where no drive that falls off is written. `run_again`: as `run` was, not recorded, with
// these bytes in the write caches at its beginning, by link of run.machine.
Duration steady_step(const Run& run, const std::function<Run(std::vector<double> cached)>& run_again);

}  // namespace memwall
