// One transformer layer as torch.compile makes it: a graph for forward and one for backward, each a straight line of
// kernels. What goes from one to the other is what the partitioner (torch/_functorch/partitioners.py) keeps: inputs
// of products and of attention and what those give; everything elementwise is computed again. Of a normalization,
// what it read, its statistics and what it gave, which is a product's input. Masks of dropout are drawn again.
#pragma once

#include "models/workload/generate/operators/tape.h"
#include "sim/trace/attention_kernel.h"

namespace memwall {

struct CompiledProjection {
  const Parameter *weight = nullptr, *bias = nullptr;  // no weight: not there
  const Parameter *down = nullptr, *up = nullptr;      // LoRA's pair, beside a weight that is frozen
  std::int64_t nf4_outputs = 0, nf4_inputs = 0;        // of a weight in NF4; 0: it is 16-bit
  Tensor scales{};                                     // of a weight in NF4
};

struct CompiledLayerPlan {
  bool rms = true;  // else layer norm, with biases
  bool rotary = false;
  bool expanded_key_value = false;
  bool dropout = false;
  bool fp8 = false;  // products of linear layers, with a scale found anew for each tensor
  std::int64_t heads = 0, key_value_heads = 0, head_size = 0;
  AttentionKernel attention = AttentionKernel::flash_attention_2;
  const Parameter *norm1 = nullptr, *norm1_bias = nullptr, *norm2 = nullptr, *norm2_bias = nullptr;
  CompiledProjection qkv, q, k, v, out, gate, up, down;  // qkv or q, k and v; gate: of a gated activation
};

// x + attention(norm(x)), then + mlp(norm(...)). `table`: of the rotation. The plan's parameters must outlive backward.
Tensor compiled_layer(Tape& tape, const CompiledLayerPlan& plan, const Tensor& x, const Tensor& table);

}  // namespace memwall
