// Liger's kernels (linkedin/Liger-Kernel, src/liger_kernel/ops).
#pragma once

#include <cstdint>

#include "models/workload/generate/operators/tape.h"

namespace memwall {

// Rows of one piece of the fused loss: of `rows` tokens as many that a piece's logits are about as large as x, rounded
// up to a power of two. REQUIRES: all above 0.
std::int64_t fused_loss_rows(std::int64_t rows, std::int64_t vocabulary, std::int64_t width);

// Output layer and mean cross entropy in one (LigerFusedLinearCrossEntropyFunction): x [..., width], weight
// [vocabulary, width]. Piece by piece the logits are made, become their own gradient in place, and give their parts of
// the gradients of x and weight, all in forward (Liger 0.6 and 0.7: that of weight from a
// product in its type, cast to fp32 before it is added): kept for backward are those two gradients alone, in the types of x and
// weight. Backward multiplies neither, as the gradient of a loss is 1; that of weight it copies, which PyTorch does
// not: policies take a parameter's gradient to be made in backward. The host waits twice: for how many targets count, and for
// whether that gradient is 1.
Tensor fused_linear_cross_entropy(Tape& tape, const Tensor& x, const Tensor& weight, const Tensor& targets);

// LigerRMSNormFunction: one kernel; kept are x, the weight and a number for each row. The gradient of x is written over
// that of the result; that of the weight is summed from an fp32 row for each multiprocessor, of which kRowsOfSums is
// taken (H100 and H200).
inline constexpr std::int64_t kRowsOfSums = 132;
Tensor rms_norm_liger(Tape& tape, const Tensor& x, const Tensor& weight);

// LigerRopeFunction: queries and keys [batch, heads, length, size] are turned where they lie, and so are their
// gradients.
struct LigerRotation {
  const Tensor &cosine, &sine;
};
void rotate_liger(Tape& tape, Tensor& q, Tensor& k, LigerRotation by);

// LigerSiLUMulFunction, silu(gate) * up: kept are both; their gradients are written over them.
Tensor silu_mul_liger(Tape& tape, const Tensor& gate, const Tensor& up);

}  // namespace memwall
