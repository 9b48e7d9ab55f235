// A step that keeps for backward what torch.compile's partitioner keeps: a minimum cut of forward's graph
// (policies/planners/minimum_cut.h), the rest runs again before what asks for it.
#pragma once

#include <cstddef>
#include <functional>

#include "sim/machine/machine.h"
#include "sim/machine/pricer.h"
#include "sim/trace/trace.h"

namespace memwall {

struct PartitionedStep {
  Trace trace;
  std::size_t rerun_ops = 0;
};

// Only ops of which `is_compiled` holds run again. The trace as it is where nothing does, or where the plan of that
// cannot be carried out.
PartitionedStep with_partition(const Trace& trace, const Machine& machine, const Pricer& pricer,
                               const std::function<bool(const Op&)>& is_compiled);

}  // namespace memwall
