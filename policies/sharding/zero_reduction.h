// Sums gradients over the ranks as backward makes them.
//
// A bucket leaves once the last of its gradients is ready: in a stream of its own it waits for the
// kernels that made them, is copied into one buffer (a lone gradient is not), and is reduced.
//
// | stage | collective | afterwards |
// |---|---|---|
// | 0 | all-reduce | copied back into the gradients |
// | 1 | reduce-scatter | the rank's part stands in the gradients, which stay whole |
// | 2, 3 | reduce-scatter into the rank's slices | the whole gradients are freed |
//
// With overlap, compute waits where a gradient is used next, at the latest at the end of backward. In
// stages 2 and 3 it waits before the next bucket leaves: at most one reduction is in flight, and memory
// that it reads is not handed out again (as in torch/distributed/fsdp, post_backward).
#pragma once

#include "policies/sharding/zero_analysis.h"
#include "policies/sharding/zero_communication.h"
#include "policies/sharding/zero_partition.h"
#include "policies/sharding/zero_settings.h"
#include "policies/trace/dataflow.h"
#include "policies/trace/trace_edit.h"

namespace memwall {

struct ReductionSummary {
  std::uint64_t buckets = 0;
  Bytes bytes_sent = 0;  // by one rank, all passes
  Bytes largest_buffer = 0;
};

// Puts the reductions into `edit`, whose base is the trace that `analysis` and `flow` describe; after
// split_update().
ReductionSummary reduce_gradients(TraceEdit& edit, const Dataflow& flow, const ZeroAnalysis& analysis,
                                  const Partition& messages, const ZeroSettings& settings, const Pricer& pricer);

}  // namespace memwall
