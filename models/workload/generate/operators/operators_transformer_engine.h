// Linear layers in fp8 as Transformer Engine runs them (transformer_engine/pytorch/module/linear.py,
// layernorm_linear.py, tensor/float8_tensor.py; revision d0067d0d), undivided or split over tensor-parallel ranks.
//
// Each tensor has one scale. With delayed scaling one kernel casts and finds the largest magnitude for later passes;
// with current scaling a kernel finds it first, another makes the scale of it, a third casts. Products on Hopper read
// both factors by rows of the summed dimension, so that what backward multiplies otherwise is also kept transposed: a
// weight (one byte more per element, for the whole run), the input of a layer (instead of itself), a gradient. With
// sequence parallelism messages that feed products are fp8, and ranks agree on the scale of what they gather.
#pragma once

#include <string>
#include <string_view>

#include "models/workload/generate/configuration/recipe.h"
#include "models/workload/generate/operators/operators_parallel.h"

namespace memwall {

// How all layers of a program compute.
struct TransformerEngine {
  Fp8Recipe recipe = Fp8Recipe::delayed;
  bool weight_cache = true;            // weights in fp8 are made once in a step
  TensorParallel* parallel = nullptr;  // null: layers are whole
};

// A weight, and what products read of it.
struct Fp8Weight {
  const Parameter* parameter = nullptr;
  // [n, k] and [k, n] in fp8, kept for the whole run; `values` is the parameter itself where that is in fp8. Empty
  // where they are made anew in each pass.
  Tensor values, transposed;
  bool made = false;  // in this step, where they are kept
};

// What a weight keeps. Before begin_step().
Fp8Weight make_fp8_weight(Tape& tape, const TransformerEngine& engine, const std::string& name,
                          const Parameter& parameter);

enum class Fp8Split : std::uint8_t { none, column, row };

// y = x W^T (+ b). `x`: in 16 bits, or in fp8 by normalization_in_fp8. As column_linear and row_linear where it is
// split; a row's bias is its caller's to add. Throws UsageError where a dimension is no multiple of 16.
Tensor fp8_linear(Tape& tape, const TransformerEngine& engine, Fp8Weight& weight, Fp8Split split, const Tensor& x,
                  const Tensor& bias = {});

// With delayed scaling a normalization in front of a product writes fp8 itself. Empty bias: RMSNorm, else LayerNorm.
Tensor normalization_in_fp8(Tape& tape, const Tensor& x, const Tensor& weight, const Tensor& bias);

// With delayed scaling, at the end of a pass: the largest magnitudes of its tensors, three to a layer, are agreed on by
// the tensor-parallel ranks, and become scales (FP8GlobalStateManager.reduce_and_update_fp8_tensors).
void update_fp8_scales(Tape& tape, const TransformerEngine& engine, std::int64_t linear_layers);

// Cross entropy of logits in 16 bits, split by the vocabulary or whole: a kernel finds each row's largest logit and
// sum, three numbers a row are gathered, a second kernel writes the gradient over the logits
// (transformer_engine/pytorch/triton/cross_entropy.py).
Tensor fused_parallel_cross_entropy(Tape& tape, TensorParallel& parallel, const Tensor& logits, const Tensor& targets);

}  // namespace memwall
