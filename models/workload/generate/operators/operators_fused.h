// Megatron-LM's fused operators (megatron/model/fused_softmax.py, fused_bias_gelu.py, the bias-dropout-add of
// transformer.py) and its cross entropy (megatron/mpu/cross_entropy.py), for one rank of tensor parallelism.
#pragma once

#include "models/workload/generate/operators/tape.h"

namespace memwall {

// [batch, heads, m, k] times [batch, heads, k, n] without copies: strides are the library's business. `name`:
// aten::bmm or aten::baddbmm.
Tensor strided_matmul(Tape& tape, std::string_view name, const Tensor& a, const Tensor& b);
// Scale, causal mask and softmax in one kernel; its backward overwrites the gradient that it is given.
Tensor masked_softmax(Tape& tape, const Tensor& scores);
Tensor bias_gelu(Tape& tape, const Tensor& x, const Tensor& bias);
// residual + dropout(x + bias)
Tensor bias_dropout_add(Tape& tape, const Tensor& x, const Tensor& bias, const Tensor& residual, double probability);
// Mean over rows of `logits` (fp32), which are copied; the copy becomes their softmax and then, in place, the gradient.
Tensor vocabulary_cross_entropy(Tape& tape, const Tensor& logits, const Tensor& targets);

}  // namespace memwall
