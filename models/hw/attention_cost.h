// How long fused attention (FlashAttention-2) takes alone, from its shape.
//
//   seconds = FLOPs / (peak * share) * (1 + start-up / keys), the last block of 128 queries and the last
//             wave of blocks paid in full
//   FLOPs   = 4 * batch * heads * (pairs of query and key) * head size; 2.5 times that backward
//   share   = forward(head size) of the peak rate; the backward reaches `backward` of that
//
// The start-up is what a block of queries spends besides its keys, counted in keys: loading the
// block, the softmax's rescaling, writing out. With a causal mask the pairs are about half, and the
// start-up is larger: blocks on the diagonal are computed in full, and lengths differ between blocks.
// FLOPs as the benchmarks of FlashAttention count them (Dao 2023, "FlashAttention-2", section 4.1).
#pragma once

#include "sim/machine/arithmetic.h"
#include "sim/machine/machine.h"
#include "sim/trace/op.h"

namespace memwall {

// {batch, heads, heads of keys and values, queries, keys, head size, 1 if causal else 0}, on a machine that
// has gpu.attention?
bool prices_attention(const Gpu& gpu, const Op& op, const Shape& shape);

// Seconds of arithmetic. REQUIRES: prices_attention().
double attention_seconds(const Machine& machine, const Op& op, const Shape& shape);

}  // namespace memwall
