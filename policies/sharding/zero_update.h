// One rank's share of what is kept and updated: storages at rest shrink, and so does the work of the
// optimizer on them. The order of ops stays as it is.
#pragma once

#include "policies/sharding/zero_analysis.h"
#include "policies/sharding/zero_partition.h"
#include "policies/trace/dataflow.h"
#include "policies/trace/trace_edit.h"
#include "sim/machine/machine.h"
#include "sim/machine/pricer.h"
#include "sim/trace/trace.h"

namespace memwall {

// What `stage` splits: 1 optimizer states, 2 and gradients, 3 and parameters. The optimizer's
// temporaries go with the states.
Partition partition_for_zero(const Trace& trace, const Dataflow& flow, const ZeroAnalysis& analysis, int stage,
                             std::uint32_t ranks);

// The same for what collectives move: gradients and parameters are cut in every stage.
Partition partition_for_messages(const Trace& trace, const Dataflow& flow, const ZeroAnalysis& analysis, int stage,
                                 std::uint32_t ranks);

struct SplitUpdate {
  std::uint64_t scaled = 0;           // updates that take their share of the time
  std::uint64_t of_unknown_work = 0;  // updates whose size nobody knows: they keep their time
};

// Shrinks split storages and scales updates (origin: transferred). From stage 2 on, a gradient storage
// is the rank's slice; the op that first writes a gradient in a pass no longer reads
// what was there, because the slice takes the sum.
SplitUpdate split_update(TraceEdit& edit, const ZeroAnalysis& analysis, const Partition& partition, int stage,
                         std::uint32_t ranks, const Machine& machine, const Pricer& pricer);

}  // namespace memwall
