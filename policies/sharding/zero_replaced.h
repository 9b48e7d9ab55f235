// The data parallelism that a step has already, which zero takes over: all-reduces of gradients, the buckets that they
// work on, the kernels that fill these and copy the sums back, and the events between.
#pragma once

#include <vector>

#include "policies/trace/dataflow.h"
#include "policies/trace/trace_edit.h"
#include "sim/trace/trace.h"

namespace memwall {

struct ReplacedReduction {
  std::vector<OpId> all_reduces;   // ascending, as all below
  std::vector<OpId> ops;           // all that goes with them, themselves included
  std::vector<StorageId> buckets;  // storages that nobody uses any more

  bool has(OpId op) const;
};

// A bucket is taken over if ops of backward alone touch it, and these do nothing but move gradients in and out of it.
// A stream on which nothing is left to run loses its events too. `all_reduces`: ascending.
ReplacedReduction find_replaced_reduction(const Trace& trace, const Dataflow& flow, std::vector<OpId> all_reduces);

// Takes its ops and buckets out. `flow`: of `edit.base()`.
void take_out(TraceEdit& edit, const Dataflow& flow, const ReplacedReduction& replaced);

}  // namespace memwall
