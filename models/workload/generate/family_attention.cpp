// Attention as families of Hugging Face's transformers write it (Model::modules): which views, copies and local
// variables there are follows their modeling_*.py of 5.23.
#include <utility>

#include "models/workload/generate/operators/checkpoint.h"
#include "models/workload/generate/operators/operators.h"
#include "models/workload/generate/transformer.h"

namespace memwall {

// modeling_gemma.py, GemmaRotaryEmbedding.forward: cosines and sines of every position, without history. OLMo 2 keeps
// them in fp32.
Transformer::Rotation Transformer::family_rotation(const Tensor& places, const Tensor& rates) {
  const NoGradientScope no_gradient(tape_);
  const ModuleScope scope(tape_, "rotary");
  const std::int64_t half = rates.shape[0];
  Tensor column = cast(tape_, tape_.view(places, {1, sequence_, 1}, {sequence_, 1, 1}), DataType::fp32);
  Tensor angle = elementwise(tape_, "aten::mul", {&column, &rates}, {1, sequence_, half}, DataType::fp32);
  column.reset();
  Tensor both = cat(tape_, Tensors{angle, angle}, -1);
  const auto scaled = [&](const char* name) {
    const Tensor value = elementwise(tape_, name, {&both}, both.shape, both.type);
    return elementwise(tape_, "aten::mul", {&value}, both.shape, both.type);
  };
  Tensor cosine = scaled("aten::cos"), sine = scaled("aten::sin");
  Rotation rotation;
  const DataType type = model_.modules == Modules::olmo2 ? DataType::fp32 : type_;
  rotation.cosine = cast(tape_, cosine, type);
  rotation.sine = cast(tape_, sine, type);
  for (Tensor* t : {&angle, &both, &cosine, &sine}) t->reset();
  return rotation;
}

// x * cosine + cat(-b, a) * sine, where a and b are slices of x.
Tensor Transformer::rotate_by_slices(const Tensor& x, const Rotation& rotation) {
  const std::int64_t half = x.shape.back() / 2;
  Tensor straight = mul(tape_, x, rotation.cosine);
  Tensor turned;
  {
    const Tensor a = narrow(tape_, x, -1, 0, half), b = narrow(tape_, x, -1, half, half);
    turned = cat(tape_, Tensors{neg(tape_, b), a}, -1);
  }
  turned = mul(tape_, turned, rotation.sine);
  Tensor sum = add(tape_, straight, turned);
  straight.reset();
  turned.reset();
  return sum;
}

// apply_rotary_pos_emb of all of each head; OLMo 2's gives both back in the type that they had.
void Transformer::rotate_both(Tensor& q, Tensor& k, const Rotation& rotation) {
  Tensor turned_q = rotate_by_slices(q, rotation);
  Tensor turned_k = rotate_by_slices(k, rotation);
  if (model_.modules == Modules::olmo2) {
    Tensor low_q = cast(tape_, turned_q, q.type);
    Tensor low_k = cast(tape_, turned_k, k.type);
    turned_q = std::move(low_q);
    turned_k = std::move(low_k);
  }
  q = std::move(turned_q);
  k = std::move(turned_k);
}

// eager_attention_forward: products, scores in memory, softmax in fp32.
Tensor Transformer::eager_scores(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask) {
  const Tensor keys = repeated_heads(k), values = repeated_heads(v);
  Tensor scores = batched_matmul(tape_, q, transpose(tape_, keys, 2, 3));
  scores = mul_number(tape_, scores);
  if (model_.attention_softcapping) scores = softcapped(tape_, std::move(scores));
  if (mask) scores = add(tape_, scores, mask);
  if (model_.architecture == Architecture::encoder)
    scores = softmax(tape_, autocast_fp32(tape_, scores));
  else
    scores = low_softmax(scores, q.type);
  if (!model_.residual_dropout_only) scores = dropout(tape_, scores, model_.dropout);
  return heads_behind_tokens(batched_matmul(tape_, scores, values));  // while the function still holds keys and values
}

// [batch, heads, length, size] to [batch, length, heads, size], contiguous.
Tensor Transformer::heads_behind_tokens(Tensor y) {
  Tensor apart = contiguous(tape_, transpose(tape_, y, 1, 2));
  y.reset();
  return apart;
}

// softmax(x, dtype=torch.float32).to(type)
Tensor Transformer::low_softmax(const Tensor& scores, DataType type) {
  Tensor wide = cast(tape_, scores, DataType::fp32);
  Tensor probabilities = softmax(tape_, wide);
  wide.reset();
  return cast(tape_, probabilities, type);
}

Tensor Transformer::family_attend(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask) {
  const auto run = [this, k, v, mask](const Tensor& queries) {
    if (recipe_.attention == Attention::plain)
      return model_.modules == Modules::falcon ? falcon_scores(queries, k, v, mask) : eager_scores(queries, k, v, mask);
    return heads_behind_tokens(fused_attention(tape_, queries, k, v, model_.architecture == Architecture::decoder,
                                               attention_kernel(recipe_.attention)));
  };
  if (recipe_.checkpoint != ActivationCheckpoint::selective) return run(q);
  return checkpoint(tape_, q, run, second_run());
}

// The output layer, of what family_attend gives.
Tensor Transformer::family_output(const Layer& layer, const Tensor& apart) {
  return project(layer.out, reshape(tape_, apart, {apart.shape[0], apart.shape[1], apart.shape[2] * apart.shape[3]}));
}

// GPT-NeoX and Phi: the first rotary_size elements of each head are turned, the others put behind them. What Phi's
// frame holds until it ends is returned.
std::array<Tensor, 4> Transformer::rotate_partly(Tensor& q, Tensor& k, const Rotation& rotation) {
  const std::int64_t turned = rotary_size(model_), rest = head_size_ - turned;
  const auto first = [&](const Tensor& x) { return rest == 0 ? x : narrow(tape_, x, -1, 0, turned); };
  Tensor q_rotated = first(q);
  const Tensor q_pass = narrow(tape_, q, -1, turned, rest);
  Tensor k_rotated = first(k);
  const Tensor k_pass = narrow(tape_, k, -1, turned, rest);
  rotate_both(q_rotated, k_rotated, rotation);
  q = cat(tape_, Tensors{q_rotated, q_pass}, -1);
  if (model_.modules == Modules::gpt_neox) q_rotated.reset();
  k = cat(tape_, Tensors{k_rotated, k_pass}, -1);
  if (model_.modules == Modules::gpt_neox) return {};
  return {q_rotated, q_pass, k_rotated, k_pass};
}

// Three products (Gemma, OLMo 2, Phi, OPT, encoders).
Tensor Transformer::separate_attention(const Layer& layer, const Tensor& x, const Rotation& rotation,
                                       const Tensor& mask) {
  Tensor q, k, v;
  if (model_.query_key_norm_over_heads) {
    q = normalize(layer.query_norm, project(layer.q, x));
    k = normalize(layer.key_norm, project(layer.k, x));
    v = project(layer.v, x);
    q = heads_of(q, heads_), k = heads_of(k, key_value_heads_), v = heads_of(v, key_value_heads_);
  } else if (model_.modules == Modules::opt) {
    q = heads_of(mul_number(tape_, project(layer.q, x)), heads_);
    k = project(layer.k, x);
    v = project(layer.v, x);
    k = heads_of(k, key_value_heads_), v = heads_of(v, key_value_heads_);
  } else {
    q = heads_of(project(layer.q, x), heads_);
    k = heads_of(project(layer.k, x), key_value_heads_);
    v = heads_of(project(layer.v, x), key_value_heads_);
    if (model_.query_key_norm) {
      q = normalize(layer.query_norm, q);
      k = normalize(layer.key_norm, k);
    }
  }
  std::array<Tensor, 4> held;
  if (model_.positions == Positions::rotary && rotary_size(model_) < head_size_)
    held = rotate_partly(q, k, rotation);
  else if (model_.positions == Positions::rotary)
    rotate_both(q, k, rotation);
  look_at_positions();
  const auto clear = [&] {  // as Python clears a frame
    for (Tensor* t : {&q, &k, &v, &held[0], &held[1], &held[2], &held[3]}) t->reset();
  };
  const Tensor apart = family_attend(q, k, v, mask);
  if (model_.modules == Modules::roberta) clear();  // its output layer is another module's
  Tensor result = family_output(layer, apart);
  clear();
  return result;
}

// One product whose result holds queries, keys and values head by head (GPT-NeoX).
Tensor Transformer::joint_attention(const Layer& layer, const Tensor& x, const Rotation& rotation, const Tensor& mask) {
  Tensor q, k, v;
  {
    const Tensor joint = reshape(tape_, project(layer.qkv, x), {recipe_.batch, x.shape[1], heads_, 3 * head_size_});
    const Tensors parts = chunk(tape_, transpose(tape_, joint, 1, 2), -1, 3);
    q = parts[0], k = parts[1], v = parts[2];
  }
  rotate_partly(q, k, rotation);
  look_at_positions();
  return family_output(layer, family_attend(q, k, v, mask));
}

Tensor Transformer::family_attention(const Layer& layer, const Tensor& x, const LayerInputs& inputs) {
  const ModuleScope scope(tape_, "attention");
  const bool local = layer.has_window;
  const Rotation& rotation = local && model_.local_rotary ? inputs.local_rotation : inputs.rotation;
  const Tensor& mask = local ? inputs.local_mask : inputs.mask;
  switch (model_.modules) {
    case Modules::gpt_neox:
      return joint_attention(layer, x, rotation, mask);
    case Modules::bloom:
      return bloom_attention(layer, x, inputs);
    case Modules::falcon:
      return falcon_attention(layer, x, rotation, mask);
    default:
      return separate_attention(layer, x, rotation, mask);
  }
}

}  // namespace memwall
