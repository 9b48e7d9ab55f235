// Compiled code launched by CUDA graphs (torch.compile's mode="reduce-overhead", torch/_inductor/cudagraph_trees.py):
// the kernels of a run of compiled ops are one call of the host.
#pragma once

#include <cstddef>

#include "sim/machine/machine.h"
#include "sim/trace/trace.h"

namespace memwall {

struct LaunchedGraphs {
  Trace trace;
  std::size_t graphs = 0, nodes = 0;
  Bytes pool = 0;  // what the graphs' pool holds from step to step for what lives within one of them
};

// A run: compiled kernels and memsets of one phase, thread and stream with nothing but allocs and frees between them.
// What is made and given back within a run lies in a pool of the graphs' own, which is there throughout: of the size of
// the most that lives at once in a run. What outlives its run is allocated before the launch; what is freed within it
// and was there before is freed behind it. Runs of fewer than `least` kernels stay calls.
LaunchedGraphs with_graph_launches(const Trace& trace, const HostCosts& costs, std::size_t least);

}  // namespace memwall
