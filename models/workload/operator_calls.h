// Which calls of a framework's operators the lines of a captured program are part of.
#pragma once

#include <cstdint>
#include <vector>

#include "models/workload/saved_tensors.h"
#include "sim/trace/op.h"

namespace memwall {

// By op of the trace a number of the call around it, kNoOp where there is none; equal numbers are one call. Both empty:
// the capture does not say.
struct OperatorCalls {
  std::vector<std::uint32_t> innermost;  // aten::cudnn_convolution around a kernel
  std::vector<std::uint32_t> outermost;  // aten::conv2d around that, and around the aten::add_ of its bias
  std::vector<AutogradNode> nodes{};     // of autograd's graph

  bool are_known() const { return !innermost.empty(); }
  bool are_of_one(OpId one, OpId other) const {
    return are_known() && outermost[one] != kNoOp && outermost[one] == outermost[other];
  }
};

}  // namespace memwall
