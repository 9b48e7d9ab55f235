#include "policies/recipe/autocast_rules.h"

#include <set>

namespace memwall {
namespace {

const std::set<std::string>& low_operators() {
  static const std::set<std::string> names{
      "mm",    "addmm",  "bmm",       "baddbmm",  "addbmm",      "mv",
      "addmv", "addr",   "linear",    "matmul",   "prelu",       "chain_matmul",
      "dot",   "einsum", "lstm_cell", "gru_cell", "convolution", "cudnn_convolution"};
  return names;
}

const std::set<std::string>& fp32_operators() {
  static const std::set<std::string> names{"native_layer_norm",
                                           "native_group_norm",
                                           "fused_rms_norm",
                                           "softmax",
                                           "nll_loss_forward",
                                           "nll_loss2d_forward",
                                           "pow",
                                           "rsqrt",
                                           "exp",
                                           "expm1",
                                           "log",
                                           "log10",
                                           "log1p",
                                           "log2",
                                           "reciprocal",
                                           "acos",
                                           "asin",
                                           "cosh",
                                           "sinh",
                                           "tan",
                                           "erfinv",
                                           "softplus",
                                           "sum",
                                           "prod",
                                           "cumsum",
                                           "cumprod",
                                           "norm",
                                           "linalg_vector_norm",
                                           "logsumexp",
                                           "mse_loss",
                                           "smooth_l1_loss",
                                           "binary_cross_entropy_with_logits",
                                           "cdist_forward",
                                           "renorm",
                                           "grid_sampler"};
  return names;
}

const std::set<std::string>& widest_operators() {
  static const std::set<std::string> names{"cat", "stack", "addcdiv", "addcmul", "atan2", "index_put", "scatter_add"};
  return names;
}

}  // namespace

AutocastRule autocast_rule(const std::string& name) {
  if (low_operators().contains(name) || name.starts_with("scaled_dot_product")) return AutocastRule::low;
  if (fp32_operators().contains(name)) return AutocastRule::fp32;
  return widest_operators().contains(name) ? AutocastRule::widest : AutocastRule::as_given;
}

}  // namespace memwall
