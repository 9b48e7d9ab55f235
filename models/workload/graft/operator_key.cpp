#include "models/workload/graft/operator_key.h"

#include <utility>

namespace memwall {
namespace {

// The same operator under a library's name, or that of another release.
constexpr std::pair<std::string_view, std::string_view> kAlike[] = {
    {"_convolution", "convolution"},
    {"thnn_conv2d", "convolution"},
    {"_slow_conv2d_forward", "convolution"},
    {"_conv_depthwise2d", "convolution"},
    {"conv_depthwise3d", "convolution"},
    {"_native_batch_norm_legit", "batch_norm"},
    {"_batch_norm_with_update", "batch_norm"},
    {"_batch_norm_impl_index", "batch_norm"},
    {"clamp_min", "relu"},
    {"threshold", "relu"},
    {"_to_copy", "copy"},
    {"to", "copy"},
    {"clone", "copy"},
    {"nll_loss", "nll_loss_forward"},
    {"nll_loss2d", "nll_loss2d_forward"},
    {"max_pool2d", "max_pool2d_with_indices"},
    {"_flash_attention_forward", "_scaled_dot_product_flash_attention"},
    {"_flash_attention_backward", "_scaled_dot_product_flash_attention_backward"},
    {"_efficient_attention_forward", "_scaled_dot_product_efficient_attention"},
    {"_efficient_attention_backward", "_scaled_dot_product_efficient_attention_backward"},
    {"_cudnn_attention_forward", "_scaled_dot_product_cudnn_attention"},
    {"_cudnn_attention_backward", "_scaled_dot_product_cudnn_attention_backward"},
    {"embedding", "index_select"},
};

// Of the library that carries it out.
constexpr std::string_view kLibraries[] = {"cudnn_", "miopen_", "mkldnn_", "native_"};

// What one operator of a later release computes, earlier ones did in parts.
constexpr std::string_view kParts[] = {"_backward_input", "_backward_weight", "_backward_bias"};

}  // namespace

std::string operator_key(std::string_view name) {
  if (const std::size_t colon = name.rfind("::"); colon != std::string_view::npos) name.remove_prefix(colon + 2);
  while (name.size() > 1 && name.ends_with('_')) name.remove_suffix(1);
  for (const std::string_view library : kLibraries)
    if (name.starts_with(library)) name.remove_prefix(library.size());
  for (const std::string_view part : kParts)
    if (name.ends_with(part)) name.remove_suffix(part.size() - std::string_view("_backward").size());
  for (const auto& [alias, key] : kAlike)
    if (name == alias) return std::string(key);
  return std::string(name);
}

}  // namespace memwall
