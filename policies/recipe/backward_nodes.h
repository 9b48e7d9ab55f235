// The nodes of autograd's graph that a pass's backward runs, told from its ops: which kernels are of one node, and
// which op of forward made it.
//
// Captures say it (Op::source). Where a trace does not, a node reads what its operator kept, and runs in its module:
// the last operator there that fits by name, has touched what is read, and has not had its turn.
#pragma once

#include <string>
#include <vector>

#include "policies/trace/dataflow.h"
#include "sim/trace/trace.h"

namespace memwall {

struct BackwardNode {
  OpId forward = kNoOp;      // the op of forward; kNoOp: not told
  std::vector<OpId> ops{};   // its kernels
  OpId end = kNoOp;          // the last op before what comes next: frees of what it was given and what it had kept
  bool sum = false;          // no node, but the sum of two gradients that meet before one, or
  bool accumulates = false;  // of one and what a parameter has of earlier passes
};

// What a kernel of backward reads that forward or the program has made (else it is a gradient).
bool is_kept_value(const Dataflow& flow, const Pass& pass, const Use& use);

// In the order in which they run.
std::vector<BackwardNode> backward_nodes(const Trace& trace, const Dataflow& flow, const Pass& pass);

}  // namespace memwall
