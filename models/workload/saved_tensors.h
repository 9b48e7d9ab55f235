// Which contents of storages autograd keeps for backward, where a capture tells which call of an operator made the node
// of autograd's graph that an op of backward runs for.
//
// PyTorch numbers the nodes of a thread's graph (at::sequence_number, aten/src/ATen/SequenceNumber.h); profiles and
// ExecutionTraces list the number with the operator that made a node ("Sequence number", seq_id) and with the function
// of backward that runs for it. A node can read only what it was given, its gradients, and what its operator kept. So
// what an op of backward reads is kept by an op of the operator with that number that has read or made the same
// content. What is kept and not read by a recorded op is not told.
//
// An operator lists the number that the next node will get, also if it makes none (a copy of the input before the first
// convolution): of several calls in a row with one number, the last made the node.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/trace/trace.h"

namespace memwall {

// The node of autograd's graph that an op belongs to.
struct AutogradNode {
  std::int64_t number = -1;  // -1: none, or the capture does not say
  bool runs = false;         // the op is of the node's function, in backward; false: of an operator with that number
  std::uint32_t call = 0;    // which call of an operator; kernels of one call have the same, others another
};

struct SavedTensors {
  std::size_t nodes = 0;  // that ops of backward run for, and whose operator is in the trace
  std::size_t saves = 0;  // contents that these keep
};

// Sets Use::saved (of an input at the operator's first op that reads it, of a result at the last that makes that
// content), and Op::source of ops of backward. Several threads may use one number for nodes of their own: the contents
// in common tell them apart. `nodes`: by op of the trace. REQUIRES: no use of the trace is marked as saved.
SavedTensors mark_saved_tensors(Trace& trace, std::span<const AutogradNode> nodes);

}  // namespace memwall
