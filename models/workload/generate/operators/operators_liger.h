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
// the gradients of x and weight, all in forward: kept for backward are those two gradients alone, in the types of x and
// weight. Backward multiplies neither, as the gradient of a loss is 1; that of weight it copies, which PyTorch does
// not: policies take a parameter's gradient to be made in backward. Not written: the host's two waits (how many targets
// count, whether that gradient is 1).
Tensor fused_linear_cross_entropy(Tape& tape, const Tensor& x, const Tensor& weight, const Tensor& targets);

}  // namespace memwall
