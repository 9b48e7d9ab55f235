// How long a matrix product takes alone, from its shape: the output is cut into tiles, tiles are
// computed in waves over the multiprocessors, and a library picks the tile that is done first.
//
//   tiles    = batch * ceil(m / tile m) * ceil(n / tile n) * splits of k
//   per SM   = ceil(tiles / multiprocessors)                       the last wave is paid in full
//   rate     = min(peak * main-loop share, what L2 can feed) * alignment share      of one multiprocessor
//   compute  = per SM * 2 * tile m * tile n * (k / splits) / rate + start-up per wave
//   duration = fixed + max(compute, traffic / bandwidth) + adding up the splits
//
// What L2 can feed is what makes small tiles slow: a tile of m x n does 2 m n operations for every
// (m + n) elements that it loads, and all multiprocessors share the L2's bandwidth; from Hopper on two
// blocks load their common operand once, as one tile of 2 m x n. (CUTLASS,
// "Efficient GEMM in CUDA", describes tiles, waves and split-k; NVIDIA's "Matrix multiplication
// background user's guide" waves and alignment.) A multiprocessor reaches its rate with one block of
// 128 x 128 or more; of smaller ones it needs several at once, as many as give it that many outputs'
// square root (an assumption: latency is hidden by what is in flight).
//
// A convolution is the product that an implicit GEMM makes of it. On matrix units cuDNN computes with channels
// innermost, and a framework's default is channels outermost: what is read and written is converted before and
// after, one more read and write of it each (a backward converts its operands for both of its products); a forward of
// one tap needs none. That tensors have the default order is an assumption; captures do not say.
#pragma once

#include <cstdint>

#include "sim/machine/machine.h"
#include "sim/trace/op.h"

namespace memwall {

// `batch` products of m x k with k x n. REQUIRES: every extent above 0.
struct GemmShape {
  double batch = 1, m = 1, n = 1, k = 1;
  double flops() const { return 2 * batch * m * n * k; }
};

// How the fastest kernel computes a product.
struct GemmPlan {
  std::uint32_t tile_m = 0, tile_n = 0, splits = 1;
  double per_multiprocessor = 0;  // tiles that the busiest one computes
  double seconds = 0;             // without the kernel's fixed time and without what its traffic takes
};

// Of Machine::gpu.matrix, whose main_loops must not be empty. `share`: of the main loop (1, or less for
// convolutions). `aligned`: bytes to which every row of the operands is aligned.
GemmPlan plan_gemm(const Machine& machine, const GemmShape& shape, DataType type, double share, double aligned);

// The largest power of two that divides the rows of the operands, in bytes, at most 128. Which extents
// lie along rows depends on the layout: n always does, k in a forward, m or k in a backward.
double row_alignment(const GemmShape& shape, DataType type, Phase phase);

// Can the shape of this op be priced as a product on this machine? (Op::shape has the extents.)
bool prices_products(const Gpu& gpu, const Op& op, const Shape& shape);

// Seconds of arithmetic for an op of class gemm or convolution. REQUIRES: prices_products().
double product_seconds(const Machine& machine, const Op& op, const Shape& shape);

}  // namespace memwall
