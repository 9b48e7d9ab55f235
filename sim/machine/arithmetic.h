// In which arithmetic a GPU computes, and how fast that is at best.
#pragma once

#include "sim/machine/machine.h"
#include "sim/trace/op.h"

namespace memwall {

// Matrix products: they run on matrix units where the GPU has them for the type.
bool uses_matrix_units(OperatorClass operator_class);

// The type in whose arithmetic the GPU computes `type`, for a class; unknown where no peak is listed. A type that the
// GPU lacks runs at the next wider one that it has.
DataType arithmetic_type(const Gpu& gpu, DataType type, OperatorClass operator_class);

// Dense FLOP/s for a data type. Matrix classes (gemm, convolution, attention) use the tensor
// rate of the type, the rest plain fp32 (fp64 for fp64) arithmetic. 0 where the machine lists no peak.
FlopsPerSecond peak_flops(const Gpu& gpu, DataType type, OperatorClass operator_class);

// Fused attention of known shape: {batch, heads, heads of keys and values, queries, keys, head size, 1 if causal}, and
// its kernel where that is another than FlashAttention-2.
bool is_fused_attention(const Op& op, const Shape& shape);

inline constexpr double kAttentionBackward = 2.5;  // of the forward's FLOPs: five products of this size against two

// FLOPs of its forward. REQUIRES: such a shape.
double attention_flops(const Shape& shape);

// The FLOPs that a kernel performs, where its shape tells that they are fewer than Op::flops, which counts every pair
// of query and key (models/workload/flops.h): fused attention leaves out what a causal mask hides.
double performed_flops(const Op& op, const Shape& shape);

}  // namespace memwall
