// Sizes that follow from a model's settings: its defaults filled in, the constants of published networks.
#pragma once

#include "models/workload/generate/configuration/model.h"

namespace memwall {

inline bool has_words(const Model& m) {
  return m.architecture == Architecture::decoder || m.architecture == Architecture::encoder;
}
inline bool is_convolutional(const Model& m) {
  return m.architecture == Architecture::resnet || m.architecture == Architecture::vgg;
}
// The MLP has a gate beside its product up.
inline bool is_gated(const Model& m) { return m.activation == Activation::swiglu || m.activation == Activation::geglu; }
inline bool is_parallel_layer(const Model& m) {
  return m.layer_order == LayerOrder::parallel || m.layer_order == LayerOrder::parallel_shared_norm;
}
// Of each layer, without those of heads.
inline std::int64_t norms_of_layer(const Model& m) {
  return m.layer_order == LayerOrder::sandwich_norm ? 4 : m.layer_order == LayerOrder::parallel_shared_norm ? 1 : 2;
}
// Has layer `number`, from 0, a window?
inline bool has_window(const Model& m, std::int64_t number) {
  return m.sliding_window != 0 && (m.full_attention_every == 0 || (number + 1) % m.full_attention_every != 0);
}
// Rows of learned positions.
inline std::int64_t position_rows(const Model& m) { return m.longest + m.position_offset; }
inline std::int64_t head_size(const Model& m) { return m.head_size ? m.head_size : m.width / m.heads; }
inline std::int64_t rotary_size(const Model& m) { return m.rotary_size ? m.rotary_size : head_size(m); }
inline std::int64_t key_value_heads(const Model& m) { return m.key_value_heads ? m.key_value_heads : m.heads; }
inline std::int64_t inner(const Model& m) { return m.inner ? m.inner : 4 * m.width; }

inline constexpr std::int64_t kResnetStem = 64;   // channels after the first convolution, and inside stage 1's blocks
inline constexpr std::int64_t kVggHidden = 4096;  // width of the first two linear layers
inline constexpr std::int64_t kVggSide = 7;       // rows and columns that they are given, by adaptive pooling

// As parameter_count, for any settings: what a whole number could not hold is only large here.
double approximate_parameter_count(const Model& model);

// Those that one token meets: of a model with experts those of experts_per_token of them, the router's and all that is
// no expert's; else all. REQUIRES: as parameter_count.
std::int64_t active_parameter_count(const Model& model);

}  // namespace memwall
