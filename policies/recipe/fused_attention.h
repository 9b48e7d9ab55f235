// Attention with its scores in memory put together: one call of a fused kernel in forward, one in backward.
#pragma once

#include <string>

#include "policies/recipe/attention_chain.h"
#include "sim/machine/machine.h"
#include "sim/machine/pricer.h"
#include "sim/trace/attention_kernel.h"

namespace memwall {

// What of the trace is attention with its scores in memory, in all of its passes.
std::vector<AttentionChain> attention_chains(const Trace& trace, const Dataflow& flow);

// By FlashAttention-2, which keeps queries, keys, values, its result and the sums of its rows; modelled. Throws
// UsageError where a chain's shapes are not told. REQUIRES: there are chains.
Trace with_fused_attention(const Trace& trace, const Machine& machine, const Pricer& pricer);

}  // namespace memwall
