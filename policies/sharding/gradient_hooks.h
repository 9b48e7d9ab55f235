// The order in which autograd hands gradients to parameters, and so runs the hooks of DistributedDataParallel and
// DeepSpeed. Both gradients of a linear layer with a bias are there once its node has run; autograd comes to the bias
// at once and to the weight through the transposition in front of it, while the node's kernels make them the other way
// round. Source: pytorch/pytorch, torch/csrc/autograd/engine.cpp (order of the ready queue), derivatives of addmm.
#pragma once

#include <string>

#include "policies/sharding/zero_analysis.h"
#include "policies/trace/dataflow.h"
#include "sim/trace/trace.h"

namespace memwall {

// Puts what each pass has made in that order; a gradient is ready behind the last kernel of its node.
void order_by_hooks(const Trace& trace, ZeroAnalysis& analysis);

// Throws UsageError where gradients are zeroed in place (zero_grad(set_to_none=False)) apart from the optimizer's step, or
// in each of several steps: a policy that makes them anew in each pass has none to zero.
void refuse_zeroed_gradients(const Trace& trace, const Dataflow& flow, const ZeroAnalysis& analysis,
                             const std::string& policy);

}  // namespace memwall
