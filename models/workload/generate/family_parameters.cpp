// The parameters and buffers of families of Hugging Face's transformers (Model::modules), in the order in which their
// classes register them.
#include <fmt/format.h>

#include "models/workload/generate/transformer.h"

namespace memwall {

Tensor Transformer::kept_buffer(const std::string& name, const Shape& shape, DataType type) {
  return tape_.permanent(name, shape, type, StorageKind::parameter);  // as captures of modules call one too
}

void Transformer::make_family_norms(Layer& layer, const std::string& prefix) {
  const std::int64_t width = model_.width;
  const bool reordered = model_.layer_order == LayerOrder::reordered_norm;
  const bool sandwich = model_.layer_order == LayerOrder::sandwich_norm;
  if (!reordered) layer.norm1 = make_norm(prefix, "attention_norm", width);
  if (reordered || sandwich) layer.attention_result = make_norm(prefix, "attention_result_norm", width);
  if (!reordered && model_.layer_order != LayerOrder::parallel_shared_norm)
    layer.norm2 = make_norm(prefix, "mlp_norm", width);
  if (reordered || sandwich) layer.mlp_result = make_norm(prefix, "mlp_result_norm", width);
}

void Transformer::make_family_attention(Layer& layer, const std::string& prefix) {
  const std::int64_t width = model_.width, queries = heads_ * head_size_, keys = key_value_heads_ * head_size_;
  const bool bias = model_.query_key_value_bias;
  if (model_.joint_query_key_value) {
    layer.qkv = make_adapted(prefix, "qkv", width, queries + 2 * keys, bias, Split::none);
    layer.out = make_adapted(prefix, "out", queries, width, model_.bias, Split::none);
    return;
  }
  const bool queries_last = model_.modules == Modules::opt;
  if (!queries_last) layer.q = make_adapted(prefix, "q", width, queries, bias, Split::none);
  layer.k = make_projection(prefix, "k", width, keys, bias);
  layer.v = make_adapted(prefix, "v", width, keys, bias, Split::none);
  if (queries_last) layer.q = make_adapted(prefix, "q", width, queries, bias, Split::none);
  layer.out = make_adapted(prefix, "out", queries, width, model_.bias, Split::none);
  if (!model_.query_key_norm) return;
  const bool all = model_.query_key_norm_over_heads;
  layer.query_norm = make_norm(prefix, "q_norm", all ? queries : head_size_);
  layer.key_norm = make_norm(prefix, "k_norm", all ? keys : head_size_);
}

Transformer::Layer Transformer::make_family_layer(std::int64_t number) {
  Layer layer;
  layer.name = fmt::format("layers.{}", number);
  layer.has_window = has_window(model_, number);
  const std::string prefix = layer.name + ".", attention = prefix + "attention.";
  const std::int64_t width = model_.width;
  const auto mlp = [&] { layer.mlps.push_back(make_mlp(prefix, "mlp")); };
  switch (model_.modules) {
    case Modules::gpt_neox:
      make_family_norms(layer, prefix);
      make_family_attention(layer, attention);
      mlp();
      return layer;
    case Modules::bloom:
    case Modules::opt:
    case Modules::roberta:
    case Modules::distilbert:
      if (model_.modules == Modules::bloom) layer.norm1 = make_norm(prefix, "attention_norm", width);
      make_family_attention(layer, attention);
      if (model_.modules != Modules::bloom) layer.norm1 = make_norm(prefix, "attention_norm", width);
      if (model_.modules == Modules::bloom) layer.norm2 = make_norm(prefix, "mlp_norm", width);
      mlp();
      if (model_.modules != Modules::bloom) layer.norm2 = make_norm(prefix, "mlp_norm", width);
      return layer;
    default:
      make_family_attention(layer, attention);
      mlp();
      make_family_norms(layer, prefix);
      return layer;
  }
}

// Rates of rotation as they are used, and as they were made; a pair for each kind of layers.
void Transformer::make_rotary_buffers() {
  if (model_.positions != Positions::rotary) return;
  const Shape half{rotary_size(model_) / 2};
  const auto pair = [&](const std::string& name) {
    Tensor rates = kept_buffer(name, half, DataType::fp32);
    kept_buffer(name + ".original", half, DataType::fp32);
    return rates;
  };
  bool any_full = false, any_local = false;
  for (std::int64_t i = 0; i < model_.layers; ++i) (has_window(model_, i) ? any_local : any_full) = true;
  if (!model_.local_rotary || any_full) rotary_rates_ = pair("rotary.rates");
  if (model_.local_rotary && any_local) local_rotary_rates_ = pair("rotary.local_rates");
}

void Transformer::make_family_decoder() {
  const Shape table{model_.vocabulary, model_.width};
  words_ = saved_parameter("words.weight", table);
  if (model_.scaled_embedding) embedding_scale_ = kept_buffer("words.scale", {}, type_);
  if (model_.normalized_embedding) embedding_norm_ = make_norm("", "embedding_norm", model_.width);
  if (model_.positions == Positions::learned)
    positions_ = parameter("positions.weight", {position_rows(model_), model_.width});
  const bool norm_first = model_.modules == Modules::opt;
  if (norm_first) norm_ = make_norm("", "norm", model_.width);
  for (std::int64_t i = 0; i < model_.layers; ++i) layers_.push_back(make_family_layer(i));
  if (model_.modules == Modules::phi) make_rotary_buffers();
  if (!norm_first) norm_ = make_norm("", "norm", model_.width);
  if (model_.modules != Modules::phi) make_rotary_buffers();
  head_ = {"head", model_.tied_embedding ? words_ : saved_parameter("head.weight", table), nullptr};
  if (model_.output_bias) head_.bias = parameter("head.bias", {model_.vocabulary});
}

void Transformer::make_family_encoder() {
  words_ = parameter("words.weight", {model_.vocabulary, model_.width});
  const auto positions = [&] { positions_ = parameter("positions.weight", {position_rows(model_), model_.width}); };
  if (model_.modules == Modules::distilbert) positions();
  if (model_.token_types > 0) types_ = parameter("types.weight", {model_.token_types, model_.width});
  norm_ = make_norm("", "norm", model_.width);
  kept_places_ = kept_buffer("positions.numbers", {1, position_rows(model_)}, DataType::int64);
  if (model_.token_types > 0) kept_types_ = kept_buffer("types.numbers", {1, position_rows(model_)}, DataType::int64);
  if (model_.modules == Modules::roberta) positions();
  for (std::int64_t i = 0; i < model_.layers; ++i) layers_.push_back(make_family_layer(i));
  const auto bias = [&] { head_.bias = parameter("head.bias", {model_.vocabulary}); };
  head_.name = "head";
  if (model_.modules == Modules::roberta) bias();  // the head's own, before its parts'
  transform_ = make_projection("", "transform", model_.width, model_.width, true);
  transform_norm_ = make_norm("", "transform_norm", model_.width);
  head_.weight = model_.tied_embedding ? words_ : parameter("head.weight", {model_.vocabulary, model_.width});
  if (model_.modules != Modules::roberta) bias();
}

}  // namespace memwall
