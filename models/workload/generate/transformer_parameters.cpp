// The parameters of transformers, in the order of model.parameters().
#include <fmt/format.h>

#include "models/workload/generate/operators/operators_gptq.h"
#include "models/workload/generate/operators/operators_nf4.h"
#include "models/workload/generate/transformer.h"

namespace memwall {

Parameter* Transformer::parameter(const std::string& name, const Shape& shape) {
  return &tape_.parameter(name, shape, type_, recipe_.lora_rank == 0);
}

// Beside LoRA, PEFT's modules_to_save trains a copy, and keeps what it was made of.
Parameter* Transformer::saved_parameter(const std::string& name, const Shape& shape) {
  if (recipe_.lora_rank == 0 || !recipe_.trained_embeddings) return parameter(name, shape);
  tape_.parameter(name + ".original", shape, type_, false);
  return &tape_.parameter(name, shape, type_);
}

Transformer::Norm Transformer::make_norm(const std::string& prefix, const std::string& name, std::int64_t width) {
  Norm norm;
  norm.name = name;
  norm.weight = parameter(prefix + name + ".weight", {width});
  if (model_.normalization == Normalization::layer_norm) norm.bias = parameter(prefix + name + ".bias", {width});
  see_tokens(norm.weight);
  see_tokens(norm.bias);
  return norm;
}

// One for all heads: a rank of a tensor-parallel group shows it its own heads alone, so that its gradient is summed over
// ranks as Megatron-LM does (_allreduce_non_tensor_model_parallel_grads).
Transformer::Norm Transformer::make_head_norm(const std::string& prefix, const std::string& name) {
  const Norm norm = make_norm(prefix, name, head_size_);
  for (const Parameter* p : {norm.weight, norm.bias})
    if (p && part_.tensor && part_.tensor->group.ranks() > 1) const_cast<Parameter*>(p)->by_tokens = true;
  return norm;
}

Transformer::Projection Transformer::make_projection(const std::string& prefix, const std::string& name,
                                                     std::int64_t inputs, std::int64_t outputs, bool bias) {
  if (recipe_.tile_factor != 0 && !prefix.empty())
    return make_tiled(prefix, name, inputs, outputs, bias);  // of a layer
  Projection p;
  p.name = name;
  if ((recipe_.weights_in_nf4 || recipe_.weights_in_gptq) && !prefix.empty()) {  // of a layer
    p.packed_outputs = outputs, p.packed_inputs = inputs;
    const std::int64_t bytes = recipe_.weights_in_nf4 ? nf4_bytes(outputs * inputs) : gptq_bytes(outputs, inputs);
    if (recipe_.weights_in_nf4) p.scales = nf4_scales(tape_, prefix + name, outputs * inputs);
    const std::int64_t elements = (bytes + bytes_of(type_) - 1) / bytes_of(type_);
    p.weight = &tape_.parameter(prefix + name + ".weight", {elements}, type_, false);  // bnb_4bit_quant_storage
  } else if (by_transformer_engine() && !prefix.empty()) {
    const DataType type = recipe_.fp8_parameters ? DataType::fp8 : type_;
    p.weight = &tape_.parameter(prefix + name + ".weight", {outputs, inputs}, type, recipe_.lora_rank == 0);
    keep_in_fp8(p, prefix + name);
  } else {
    p.weight = parameter(prefix + name + ".weight", {outputs, inputs});
  }
  if (bias) p.bias = parameter(prefix + name + ".bias", {outputs});
  return p;
}

// A projection that LoRA adapts (torchtune's LoRALinear): beside it, down to the rank and up again.
Transformer::Projection Transformer::make_adapted(const std::string& prefix, const std::string& name,
                                                  std::int64_t inputs, std::int64_t outputs, bool bias, Split how) {
  Projection p = make_projection(prefix, name, inputs, outputs, bias);
  divide(p, how);
  const std::int64_t rank = recipe_.lora_rank;
  const bool gives_heads = name == "qkv" || name == "q" || name == "v";
  if (rank == 0 || (recipe_.lora_targets == LoraTargets::query_key_value && !gives_heads)) return p;
  // Over tensor-parallel ranks (operators/parallel_adapter.h).
  const std::int64_t few = p.split == Split::column ? rank / split_ : rank;
  const std::int64_t many = p.split == Split::row ? outputs / split_ : outputs;
  const DataType type = recipe_.lora_in_fp32 ? DataType::fp32 : type_;
  p.down = &tape_.parameter(prefix + name + ".lora_a.weight", {few, inputs}, type);
  p.up = &tape_.parameter(prefix + name + ".lora_b.weight", {many, rank}, type);
  return p;
}

// With sequence parallelism a parameter that all ranks have whole meets each rank's tokens alone.
void Transformer::see_tokens(const Parameter* whole) {
  if (whole && part_.tensor && part_.tensor->by_tokens()) const_cast<Parameter*>(whole)->by_tokens = true;
}

void Transformer::divide(Projection& projection, Split how) {
  if (!part_.tensor) return;
  projection.split = how;
  if (how == Split::row) see_tokens(projection.bias);
}

Transformer::FeedForward Transformer::make_mlp(const std::string& prefix, const std::string& name) {
  FeedForward mlp;
  mlp.name = name;
  const std::string inside = name.empty() ? prefix : prefix + name + ".";
  const std::int64_t width = model_.width, in = inner(model_) / split_;
  const bool gated = is_gated(model_), joint = gated && joins_columns();
  const Split column = gated && !joint ? Split::shared_column : Split::column;
  if (gated && !joint) mlp.gate = make_adapted(inside, "gate", width, in, model_.bias, column);
  mlp.up = make_adapted(inside, joint ? "gate_up" : "up", width, joint ? 2 * in : in, model_.bias, column);
  mlp.down = make_adapted(inside, "down", in, width, model_.bias, Split::row);
  return mlp;
}

Transformer::Layer Transformer::make_layer(const std::string& name) {
  Layer layer;
  layer.name = name;
  const std::string prefix = name + ".", attention = prefix + "attention.";
  layer.norm1 = make_norm(prefix, model_.joint_query_key_value ? "norm1" : "attention_norm", model_.width);
  layer.norm2 = make_norm(prefix, model_.joint_query_key_value ? "norm2" : "mlp_norm", model_.width);
  if (model_.layer_order == LayerOrder::sandwich_norm) {
    layer.attention_result = make_norm(prefix, "attention_result_norm", model_.width);
    layer.mlp_result = make_norm(prefix, "mlp_result_norm", model_.width);
  }
  const std::int64_t width = model_.width, queries = heads_ * head_size_, keys = key_value_heads_ * head_size_;
  const bool bias = model_.query_key_value_bias;
  if (model_.joint_query_key_value) {
    layer.qkv = make_adapted(attention, "qkv", width, queries + 2 * keys, bias, Split::column);
    layer.out = make_adapted(attention, "out", queries, width, model_.bias, Split::row);
  } else {
    layer.q = make_adapted(attention, "q", width, queries, bias, Split::shared_column);
    layer.out = make_adapted(attention, "out", queries, width, model_.bias, Split::row);
    layer.k = make_projection(attention, "k", width, keys, bias);
    divide(layer.k, Split::shared_column);
    layer.v = make_adapted(attention, "v", width, keys, bias, Split::shared_column);
  }
  if (model_.query_key_norm) {
    layer.query_norm = make_head_norm(attention, "q_norm");
    layer.key_norm = make_head_norm(attention, "k_norm");
  }
  if (model_.experts == 0) {
    layer.mlps.push_back(make_mlp(prefix, is_gated(model_) ? "mlp" : ""));
    return layer;
  }
  layer.router = make_projection(prefix + "mlp.", "gate", width, model_.experts, false);
  for (std::int64_t i = 0; i < model_.experts; ++i)
    layer.mlps.push_back(make_mlp(prefix + "mlp.", fmt::format("experts.{}", i)));
  return layer;
}

void Transformer::make_decoder() {
  const Shape table{model_.vocabulary / split_, model_.width};
  if (part_.embedding) {
    words_ = saved_parameter("words.weight", table);
    if (model_.positions == Positions::learned)
      positions_ = parameter("positions.weight", {position_rows(model_), model_.width});
  }
  for (std::int64_t i = part_.first_layer; i < part_.first_layer + part_.layers; ++i)
    layers_.push_back(make_layer(fmt::format("layers.{}", i)));
  if (!part_.loss) return;
  norm_ = make_norm("", "norm", model_.width);
  const bool shared = model_.tied_embedding && part_.embedding;  // else the last stage has a copy of the embedding
  head_ = {"head", shared ? words_ : saved_parameter("head.weight", table), nullptr};
  divide(head_, Split::column);
}

void Transformer::make_encoder() {
  words_ = parameter("words.weight", {model_.vocabulary, model_.width});
  positions_ = parameter("positions.weight", {model_.longest, model_.width});
  types_ = parameter("types.weight", {2, model_.width});
  norm_ = make_norm("", "norm", model_.width);
  for (std::int64_t i = 0; i < model_.layers; ++i) layers_.push_back(make_layer(fmt::format("layers.{}", i)));
  transform_ = make_projection("", "transform", model_.width, model_.width, true);
  transform_norm_ = make_norm("", "transform_norm", model_.width);
  head_.name = "head";
  head_.weight = model_.tied_embedding ? words_ : parameter("head.weight", {model_.vocabulary, model_.width});
  head_.bias = parameter("head.bias", {model_.vocabulary});
}

void Transformer::make_vision() {
  const std::int64_t side = model_.image / model_.patch;
  token_ = parameter("token", {1, 1, model_.width});
  positions_ = parameter("positions", {1, side * side + 1, model_.width});
  patches_.name = "patches";
  patches_.weight = parameter("patches.weight", {model_.width, 3, model_.patch, model_.patch});
  patches_.bias = parameter("patches.bias", {model_.width});
  for (std::int64_t i = 0; i < model_.layers; ++i) layers_.push_back(make_layer(fmt::format("layers.{}", i)));
  norm_ = make_norm("", "norm", model_.width);
  head_ = make_projection("", "head", model_.width, model_.classes, true);
}

}  // namespace memwall
