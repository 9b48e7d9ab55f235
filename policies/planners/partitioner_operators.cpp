#include "policies/planners/partitioner_operators.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "policies/trace/operator_name.h"
#include "policies/trace/rerun_rules.h"

namespace memwall {
namespace {

// Without namespace and underscores around. What decomposes into such operators is among them, and of backward what
// is merged with what it reads.
constexpr auto kRecomputable = std::to_array<std::string_view>({"abs",
                                                                "acos",
                                                                "add",
                                                                "add_rms_norm",
                                                                "addcdiv",
                                                                "addcmul",
                                                                "alias",
                                                                "amax",
                                                                "amin",
                                                                "any",
                                                                "arange",
                                                                "argmax",
                                                                "asin",
                                                                "atan",
                                                                "atan2",
                                                                "atanh",
                                                                "bitwise_not",
                                                                "broadcast_tensors",
                                                                "ceil",
                                                                "clamp",
                                                                "clone",
                                                                "contiguous",
                                                                "copy",
                                                                "cos",
                                                                "cosh",
                                                                "cudnn_batch_norm",
                                                                "div",
                                                                "embedding",
                                                                "empty",
                                                                "empty_like",
                                                                "eq",
                                                                "erf",
                                                                "erfc",
                                                                "exp",
                                                                "expand",
                                                                "expm1",
                                                                "fill",
                                                                "floor",
                                                                "fmod",
                                                                "frac",
                                                                "full",
                                                                "full_like",
                                                                "fused_rms_norm",
                                                                "gather",
                                                                "ge",
                                                                "gelu",
                                                                "gelu_backward",
                                                                "grad_sum_to_size",
                                                                "gt",
                                                                "index",
                                                                "isinf",
                                                                "layer_norm",
                                                                "le",
                                                                "lerp",
                                                                "lgamma",
                                                                "lift_fresh_copy",
                                                                "log",
                                                                "log10",
                                                                "log1p",
                                                                "log2",
                                                                "log_softmax",
                                                                "lt",
                                                                "masked_fill",
                                                                "max",
                                                                "maximum",
                                                                "mean",
                                                                "min",
                                                                "minimum",
                                                                "mul",
                                                                "native_batch_norm",
                                                                "native_layer_norm",
                                                                "ne",
                                                                "neg",
                                                                "new_zeros",
                                                                "ones",
                                                                "ones_like",
                                                                "pow",
                                                                "reciprocal",
                                                                "relu",
                                                                "remainder",
                                                                "reshape",
                                                                "rms_norm",
                                                                "round",
                                                                "rsqrt",
                                                                "rsub",
                                                                "scalar_tensor",
                                                                "select",
                                                                "sigmoid",
                                                                "silu",
                                                                "sin",
                                                                "sinh",
                                                                "slice",
                                                                "softmax",
                                                                "softplus",
                                                                "sqrt",
                                                                "squeeze",
                                                                "std",
                                                                "sub",
                                                                "sum",
                                                                "sum_to_size",
                                                                "tan",
                                                                "tanh",
                                                                "threshold",
                                                                "threshold_backward",
                                                                "to",
                                                                "to_copy",
                                                                "triu",
                                                                "trunc",
                                                                "type_as",
                                                                "unsafe_view",
                                                                "unsqueeze",
                                                                "var",
                                                                "var_mean",
                                                                "where",
                                                                "zero",
                                                                "zeros",
                                                                "zeros_like",
                                                                "native_layer_norm_backward",
                                                                "native_batch_norm_backward",
                                                                "fused_rms_norm_backward",
                                                                "softmax_backward_data",
                                                                "log_softmax_backward_data",
                                                                "silu_backward",
                                                                "sigmoid_backward",
                                                                "tanh_backward",
                                                                "native_dropout_backward",
                                                                "nll_loss_forward",
                                                                "nll_loss_backward"});

constexpr auto kComputeIntensive =
    std::to_array<std::string_view>({"addmm", "baddbmm", "bmm", "convolution", "convolution_backward",
                                     "cudnn_convolution", "efficient_attention_forward", "flash_attention_forward",
                                     "int_mm", "linear", "matmul", "mm", "scaled_mm", "upsample_bilinear2d"});

template <typename Names>
bool contains(const Names& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

}  // namespace

PartitionerOperator partitioner_operator(const Trace& trace, const Op& op) {
  PartitionerOperator found;
  const std::string name = plain_operator_name(operator_of(trace, op));
  found.random = draws_random_numbers(op, trace);
  found.joins = name == "cat";
  found.compute_intensive = contains(kComputeIntensive, name) || name.starts_with("scaled_dot_product_") ||
                            op.operator_class == OperatorClass::gemm ||
                            op.operator_class == OperatorClass::convolution ||
                            op.operator_class == OperatorClass::attention;
  found.recomputable =
      !found.random && !found.compute_intensive && !found.joins &&
      (contains(kRecomputable, name) || op.operator_class == OperatorClass::elementwise || op.kind == OpKind::memset);
  return found;
}

bool is_fusible(const PartitionerOperator& maker, const PartitionerOperator& reader) {
  return reader.joins || ((maker.recomputable || maker.random) && (reader.recomputable || reader.random));
}

}  // namespace memwall
