// scaled_dot_product_attention by PyTorch's operators, its scores in memory: what the backend "math" runs
// (ATen/native/transformers/attention.cpp, _scaled_dot_product_attention_math; torch 2.15).
//
// All is in fp32. Queries and keys are scaled each by a root, a causal mask is made anew in each call and added, and
// the softmax is one that gives rows without a key zeros. Heads that lie behind their tokens, as a view turns them, are
// copied for each batched product, and the result for what comes behind it.
#pragma once

#include <string>

#include "sim/machine/machine.h"
#include "sim/machine/pricer.h"
#include "sim/trace/trace.h"

namespace memwall {

// Why the step's calls of fused attention cannot be taken apart, "" if they can: without the name of the policy and the
// trace.
std::string unfused_obstacle(const Trace& trace);

// `dropout`: weights are dropped out, which a fused kernel does not show. All that is written is modelled.
// REQUIRES: unfused_obstacle(trace) is empty.
Trace with_unfused_attention(const Trace& trace, const Machine& machine, const Pricer& pricer, bool dropout);

}  // namespace memwall
