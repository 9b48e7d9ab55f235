// The order in which autograd hands gradients to parameters, and so runs the hooks of DistributedDataParallel and
// DeepSpeed. Both gradients of a linear layer with a bias are there once its node has run; autograd comes to the bias
// at once and to the weight through the transposition in front of it, while the node's kernels make them the other way
// round. Source: pytorch/pytorch, torch/csrc/autograd/engine.cpp (order of the ready queue), derivatives of addmm.
#pragma once

#include "policies/sharding/zero_analysis.h"
#include "sim/trace/trace.h"

namespace memwall {

// Puts what each pass has made in that order; a gradient is ready behind the last kernel of its node.
void order_by_hooks(const Trace& trace, ZeroAnalysis& analysis);

}  // namespace memwall
