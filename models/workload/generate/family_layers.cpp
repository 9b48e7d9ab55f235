// Layers as families of Hugging Face's transformers write them (Model::modules).
#include <utility>

#include "models/workload/generate/operators/checkpoint.h"
#include "models/workload/generate/operators/operators.h"
#include "models/workload/generate/transformer.h"

namespace memwall {

Tensor Transformer::activated(const Tensor& x) {
  switch (model_.activation) {
    case Activation::relu:
      return relu(tape_, x);
    case Activation::swiglu:
      return silu(tape_, x);
    case Activation::gelu_tanh_in_parts:
      return gelu_tanh_in_parts(tape_, x);
    case Activation::gelu_tanh_recomputed:
      return gelu_tanh_recomputed(tape_, x);
    case Activation::gelu:
    case Activation::gelu_tanh:
    case Activation::geglu:
      break;
  }
  return gelu(tape_, x);
}

Tensor Transformer::family_mlp(const Layer& layer, const Tensor& x) {
  const FeedForward& mlp = layer.mlps.front();
  const ModuleScope scope(tape_, mlp.name);
  Tensor y;
  if (is_gated(model_)) {
    y = project(mlp.gate, x);
    y = activated(y);
    const Tensor up = project(mlp.up, x);
    return project(mlp.down, mul(tape_, y, up));
  }
  y = project(mlp.up, x);
  y = activated(y);
  return project(mlp.down, y);
}

// Gemma, OLMo 2: norms before a part, behind it, or both.
Tensor Transformer::run_sequential(const Layer& layer, Tensor x, const LayerInputs& inputs) {
  const auto run = [&](const Norm& before, const Norm& behind, const auto& part_of) {
    Tensor part = before.weight ? normalize(before, x) : x;
    part = part_of(part);
    if (behind.weight) part = normalize(behind, part);
    Tensor sum = add(tape_, x, part);
    part.reset();
    x = std::move(sum);
  };
  run(layer.norm1, layer.attention_result, [&](const Tensor& part) { return family_attention(layer, part, inputs); });
  run(layer.norm2, layer.mlp_result, [&](const Tensor& part) { return family_mlp(layer, part); });
  return x;
}

// GPT-NeoX, Phi: both parts read the layer's input. Their results are added to each other first.
Tensor Transformer::run_parallel(const Layer& layer, const Tensor& x, const LayerInputs& inputs) {
  const bool shared = model_.layer_order == LayerOrder::parallel_shared_norm;
  Tensor normed = normalize(layer.norm1, x);
  Tensor attended = drop("dropout1", family_attention(layer, normed, inputs));
  if (!shared) {
    normed.reset();
    normed = normalize(layer.norm2, x);
  }
  Tensor fed = drop("dropout2", family_mlp(layer, normed));
  if (!shared) normed.reset();
  Tensor both = shared ? add(tape_, attended, fed) : add(tape_, fed, attended);
  Tensor sum = add(tape_, both, x);
  for (Tensor* t : {&both, &normed, &attended, &fed}) t->reset();
  return sum;
}

// GPT-NeoX without use_parallel_residual.
Tensor Transformer::run_neox_sequential(const Layer& layer, const Tensor& x, const LayerInputs& inputs) {
  Tensor attended = drop("dropout1", family_attention(layer, normalize(layer.norm1, x), inputs));
  attended = add(tape_, attended, x);
  Tensor fed = drop("dropout2", family_mlp(layer, normalize(layer.norm2, attended)));
  Tensor sum = add(tape_, fed, attended);
  attended.reset();
  fed.reset();
  return sum;
}

// No module of its own: the layer's variable becomes what each operator gives.
Tensor Transformer::opt_mlp(const Layer& layer, Tensor x) {
  const FeedForward& mlp = layer.mlps.front();
  const ModuleScope scope(tape_, mlp.name);
  x = project(mlp.up, x);
  x = activated(x);
  return project(mlp.down, x);
}

// modeling_opt.py, OPTDecoderLayer: the second part sees all tokens as rows.
Tensor Transformer::run_opt_layer(const Layer& layer, Tensor x, const LayerInputs& inputs) {
  const Shape shape = x.shape;
  Tensor part = normalize(layer.norm1, x);
  part = family_attention(layer, part, inputs);
  part = drop("dropout1", part);
  part = add(tape_, x, part);
  part = reshape(tape_, part, {x.elements() / model_.width, model_.width});
  x = part;
  part = normalize(layer.norm2, part);
  part = opt_mlp(layer, std::move(part));
  part = drop("dropout2", part);
  part = add(tape_, x, part);
  return reshape(tape_, part, shape);
}

// Encoders: norms behind the sums. DistilBERT has no dropout behind attention.
Tensor Transformer::run_encoder_layer(const Layer& layer, Tensor x, const LayerInputs& inputs) {
  Tensor part = family_attention(layer, x, inputs);
  if (model_.modules == Modules::roberta) part = drop("dropout1", part);
  {
    const Tensor sum = add(tape_, part, x);
    x = normalize(layer.norm1, sum);
  }
  part.reset();
  part = family_mlp(layer, x);
  part = drop("dropout2", part);
  const Tensor sum = add(tape_, part, x);
  Tensor result = normalize(layer.norm2, sum);
  part.reset();
  return result;
}

Tensor Transformer::run_whole_family_layer(const Layer& layer, const Tensor& x, const LayerInputs& inputs) {
  const ModuleScope scope(tape_, layer.name);
  switch (model_.modules) {
    case Modules::opt:
      return run_opt_layer(layer, x, inputs);
    case Modules::bloom:
      return run_bloom_layer(layer, x, inputs);
    case Modules::falcon:
      return run_falcon_layer(layer, x, inputs);
    case Modules::roberta:
    case Modules::distilbert:
      return run_encoder_layer(layer, x, inputs);
    case Modules::gpt_neox:
      return is_parallel_layer(model_) ? run_parallel(layer, x, inputs) : run_neox_sequential(layer, x, inputs);
    case Modules::phi:
      return run_parallel(layer, x, inputs);
    default:
      return run_sequential(layer, x, inputs);
  }
}

Tensor Transformer::run_family_layer(const Layer& layer, const Tensor& x, const LayerInputs& inputs) {
  if (recipe_.checkpoint != ActivationCheckpoint::full) return run_whole_family_layer(layer, x, inputs);
  return checkpoint(
      tape_, x, [this, &layer, inputs](const Tensor& input) { return run_whole_family_layer(layer, input, inputs); });
}

}  // namespace memwall
