// Which part of a step is worth making faster: the step simulated again with its kernels, its host, its copies, its
// collectives twice as fast, one after the other. A part of the critical path says less, for the path moves.
#pragma once

#include <functional>
#include <vector>

#include "sim/trace/shared_trace.h"
#include "traces/run/run.h"

namespace memwall {

// Of each part that the step has; none with a pager, whose moves follow from times: half of something is then as often
// slower as faster. Kernels are faster with the device's memory, the host with its own, copies with the links between
// memories. `run_again`: as `run` was, on a machine of one GPU, not recorded.
std::vector<Speedup> try_speedups(const Run& run, const std::function<Run(SharedTrace, const Machine&)>& run_again);

}  // namespace memwall
