// A forward pass as a graph of its ops and of the values that they make, for planners that cut it: which values are
// kept for backward, and which are computed again?
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "policies/planners/partitioner_operators.h"
#include "policies/profile/step_profile.h"

namespace memwall {

// A version of a storage. Where an op works in place, what was there before is a value of its own, and gone.
struct GraphValue {
  StorageId storage = kNoStorage;
  std::uint32_t version = 0;
  std::size_t maker = 0;             // index into ForwardGraph::ops
  std::vector<std::size_t> readers;  // likewise, ascending; an op that writes on top of it is one of them
  std::vector<OpId> backward;        // ops behind forward that read it
  bool is_last = false;              // no op of forward writes on top of it: it can be kept
  bool may_go = false;               // the program holds it for backward, which only reads it: it can be dropped
  Bytes bytes = 0;                   // that keeping it takes; 0 where it is there anyway
};

struct GraphOp {
  OpId id = kNoOp;
  std::vector<std::size_t> reads, makes;  // indices into ForwardGraph::values
  PartitionerOperator type;
  // Can it run once more in backward? Not where it communicates, where the host waits for it, where it writes to what
  // lives outside of this forward, or reads of that what is gone or has changed by then.
  bool is_repeatable = true;
};

struct ForwardGraph {
  Pass pass;
  std::vector<GraphOp> ops;        // in host order
  std::vector<GraphValue> values;  // in the order in which they are made
};

ForwardGraph forward_graph(const StepProfile& profile, const Pass& pass);

// Of what an op makes and reads, storages of parameters included.
Bytes bytes_made(const StepProfile& profile, const ForwardGraph& graph, std::size_t op);
Bytes bytes_read(const StepProfile& profile, const ForwardGraph& graph, std::size_t op);

}  // namespace memwall
