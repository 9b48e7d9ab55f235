// A step of one rank among several of its host: how long it would take if no other rank moved or computed there.
#pragma once

#include <functional>

#include "sim/machine/machine.h"
#include "traces/run/run.h"

namespace memwall {

// The machine with every link, memory and core of its own for each rank. What several ranks' memory takes of a tier
// that they share stays as it is, and so do the adapters of a network.
Machine without_sharing(Machine machine);

// Mean step time of the run on that machine: what is left of the step is waiting for other ranks' copies, storage
// accesses and work on the CPU. 0 where the run has one rank, or nothing of it crosses what ranks share. `run_again`:
// as `run` was, not recorded, on another machine.
Duration alone_step(const Run& run, const std::function<Run(const Machine&)>& run_again);

}  // namespace memwall
