// The operators of tensor parallelism, as Megatron-LM has them (revision d98e8a64, megatron/core/tensor_parallel/
// layers.py, mappings.py, cross_entropy.py): a linear layer split by its outputs (column) or by its inputs (row), an
// embedding and a loss split by the vocabulary. With sequence parallelism what lies between a row and the next column is
// split by tokens: a column gathers it, a row scatters its sum.
//
// Tensors are [batch, tokens, width].
#pragma once

#include "models/workload/generate/operators/communicator.h"
#include "models/workload/generate/operators/operators.h"

namespace memwall {

// The ranks that share each layer, and how.
struct TensorParallel {
  Communicator& group;
  bool sequence = false;
  bool overlap = false;          // products in pieces beside their gathers and scatters (overlapped_product.h)
  bool async_all_reduce = true;  // of the gradient of a column's inputs, beside the product of the weight's
  bool symmetric_memory = false;  // the pieces are torch's (_symmetric_memory), not Transformer Engine's
  // Where columns gather what they are given: one buffer for the whole run, used again by each. Empty: a new tensor each
  // time. Of the size of the largest.
  Tensor gather_buffer{};

  bool by_tokens() const { return sequence && group.ranks() > 1; }
  bool overlaps() const { return overlap && by_tokens(); }
};

// y = x W^T (+ b, by a kernel of its own), W the rows of this rank. Forward with `sequence` gathers x; backward gathers
// it again while the gradient of x is computed, and reduces that one while the weight's is.
Tensor column_linear(Tape& tape, TensorParallel& parallel, const Tensor& x, const Tensor& weight, const Tensor& bias);
// What several columns read (queries, keys and values each by a product of its own; torchtitan, DTensor): x, gathered with
// `sequence`; backward the sum of their gradients is reduced, once. They are then linear().
Tensor shared_input(Tape& tape, TensorParallel& parallel, const Tensor& x);
// y = the sum over ranks of x W^T, W the columns of this rank; with `sequence` this rank's tokens of it.
Tensor row_linear(Tape& tape, TensorParallel& parallel, const Tensor& x, const Tensor& weight);

// silu(gate) * up, or gelu(gate) * up, of a joint [..., 2 f], which is kept (Megatron-LM's fused bias_swiglu and
// bias_geglu, without a bias).
enum class JointGate : std::uint8_t { silu, gelu };
Tensor joint_gate(Tape& tape, const Tensor& x, JointGate gate);

// Rows of words that this rank holds; the others are zero. Not summed yet.
Tensor vocabulary_embedding(Tape& tape, TensorParallel& parallel, const Tensor& weight, const Tensor& words);
// Their sum over ranks; `by_tokens`: of this rank's tokens alone.
Tensor summed_embedding(Tape& tape, TensorParallel& parallel, const Tensor& x, bool by_tokens);
// This rank's tokens, a copy; backward gathers.
Tensor own_tokens(Tape& tape, TensorParallel& parallel, const Tensor& x);

// The mean loss of logits in fp32 that are split by the vocabulary; they become the probabilities that backward needs.
Tensor split_cross_entropy(Tape& tape, TensorParallel& parallel, const Tensor& logits, const Tensor& targets);

}  // namespace memwall
