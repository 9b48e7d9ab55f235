// How long fused attention takes alone, from its shape and the kernel that computes it.
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
//
// A kernel that the machine's file does not list is priced beside FlashAttention-2 (attention_beside_second()).
#pragma once

#include "sim/machine/arithmetic.h"
#include "sim/machine/machine.h"
#include "sim/trace/op.h"

namespace memwall {

// A fused attention of known shape, on a machine that has gpu.attention?
bool prices_attention(const Gpu& gpu, const Op& op, const Shape& shape);

// Seconds of arithmetic. REQUIRES: prices_attention().
double attention_seconds(const Machine& machine, const Op& op, const Shape& shape);

// As KernelEfficiency::residual, of the kernel that the shape names; 0 = not known. REQUIRES: prices_attention().
double attention_residual(const Gpu& gpu, const Shape& shape);

// The share of the peak rate that a kernel reaches, over FlashAttention-2's on the same GPU, where the file of the GPU
// does not list it; `head_bytes`: of one row of a head.
//   flash_attention_1, memory_efficient  0.554 (heads of 128 bytes) and 0.439 (of 256): medians of
//       flashattention_tflops_a100_h100.csv, forward and backward together (it has no pass alone, so that the ratio of
//       the two is the second's), causal, 2,048 keys and more, A100 and H100.
//       xFormers' kernels are of that generation (Dao 2023 shows both close to each other)
//   triton             1 / 1.9: the middle of "1.3 to 2.5 times" (Dao 2023, section 4.1)
//   others             1: cuDNN's kernels before Hopper; FlashAttention 3 and 4 exist for newer GPUs, whose files list
//                      them, and on others PyTorch takes the second
double attention_beside_second(AttentionKernel kernel, double head_bytes);

}  // namespace memwall
