// Attention: queries, keys and values by one product or by three, rotated or not, with fused kernels or plain.
#include <utility>

#include "models/workload/generate/operators/operators.h"
#include "models/workload/generate/operators/operators_fused.h"
#include "models/workload/generate/operators/operators_liger.h"
#include "models/workload/generate/transformer.h"

namespace memwall {
namespace {

Tensor two_of(Tape& tape, const Tensor& x) {
  const Tensors halves{x, x};
  return cat(tape, halves, -1);
}

}  // namespace

Transformer::Rotation Transformer::kept_rotation() {
  if (!tables_) {
    tables_ = tape_.permanent("rotation", {sequence_, 1, head_size_ / 2, 2}, DataType::fp32,
                              StorageKind::parameter);  // a buffer: what captures of modules call one too
  }
  Rotation rotation;
  rotation.cosine = tape_.view(tables_, {sequence_, 1, head_size_ / 2}, {head_size_, head_size_, 2});
  rotation.sine = rotation.cosine;
  return rotation;
}

// Cosines and sines of every position, made anew in each step, without history.
Transformer::Rotation Transformer::make_rotation() {
  const NoGradientScope no_gradient(tape_);
  Tensor rate = fill(tape_, "aten::arange", {head_size_ / 2}, DataType::int64);
  rate = cast(tape_, rate, DataType::fp32);
  rate = neg(tape_, rate);
  rate = div_number(tape_, rate);
  rate = elementwise(tape_, "aten::pow", {&rate}, rate.shape, rate.type);
  Tensor angle = fill(tape_, "aten::arange", {sequence_}, DataType::int64);
  angle = cast(tape_, angle, DataType::fp32);
  angle = reshape(tape_, angle, {sequence_, 1});
  angle = mul(tape_, angle, rate);
  angle = two_of(tape_, angle);
  Rotation rotation;
  rotation.cosine = cast(tape_, elementwise(tape_, "aten::cos", {&angle}, angle.shape, angle.type), type_);
  rotation.sine = cast(tape_, elementwise(tape_, "aten::sin", {&angle}, angle.shape, angle.type), type_);
  rate.reset();
  return rotation;
}

// Even and odd elements are turned against each other, then put together again: x.float(), four products, their sum
// and their difference, stack, type_as.
Tensor Transformer::rotate_pairs(const Tensor& x, const Rotation& rotation) {
  Tensor wide = cast(tape_, x, DataType::fp32);
  const Shape half{x.shape[0], x.shape[1], x.shape[2], head_size_ / 2};
  Tensor even = select(tape_, reshape(tape_, wide, {half[0], half[1], half[2], half[3], 2}), 4);
  Tensor odd = select(tape_, reshape(tape_, wide, {half[0], half[1], half[2], half[3], 2}), 4);
  wide.reset();
  Tensor a = mul(tape_, even, rotation.cosine), b = mul(tape_, odd, rotation.sine);
  Tensor real = sub(tape_, a, b);
  a.reset();
  b.reset();
  a = mul(tape_, odd, rotation.cosine), b = mul(tape_, even, rotation.sine);
  Tensor imaginary = add(tape_, a, b);
  a.reset();
  b.reset();
  const Shape column{half[0], half[1], half[2], half[3], 1};
  Tensors parts{reshape(tape_, real, column), reshape(tape_, imaginary, column)};
  real.reset();
  imaginary.reset();
  Tensor both = cat(tape_, parts, -1);
  parts.clear();
  even.reset();
  odd.reset();
  return cast(tape_, reshape(tape_, both, x.shape), x.type);
}

// x * cosine + cat(-b, a) * sine, where a and b are the halves of x.
Tensor Transformer::rotate(const Tensor& x, const Rotation& rotation) {
  const Tensors halves = chunk(tape_, x, -1, 2);
  Tensor straight = mul(tape_, x, rotation.cosine);
  Tensor turned = cat(tape_, Tensors{neg(tape_, halves[1]), halves[0]}, -1);
  turned = mul(tape_, turned, rotation.sine);
  Tensor sum = add(tape_, straight, turned);
  straight.reset();
  turned.reset();
  return sum;
}

// [batch, length, heads * size] to [batch, heads, length, size], each head normalized where there is a norm.
Tensor Transformer::heads_of(const Tensor& x, std::int64_t heads, const Norm* norm) {
  const Tensor apart = reshape(tape_, x, {recipe_.batch, x.shape[1], heads, head_size_});
  return transpose(tape_, norm && norm->weight ? normalize(*norm, apart) : apart, 1, 2);
}

// As heads_of, each head copied for all queries that share it.
Tensor Transformer::all_heads_of(const Tensor& x) {
  const std::int64_t length = x.shape[1], shared = heads_ / key_value_heads_;
  const Tensor apart = reshape(tape_, x, {recipe_.batch, length, key_value_heads_, 1, head_size_});
  const Tensor spread = expand(tape_, apart, {recipe_.batch, length, key_value_heads_, shared, head_size_});
  return transpose(tape_, reshape(tape_, spread, {recipe_.batch, length, heads_, head_size_}), 1, 2);
}

// Three products, rotated before the heads are moved to the front (torchtune's MultiHeadAttention).
Tensor Transformer::pairwise_attention(const Layer& layer, const Tensor& x, const Rotation& rotation) {
  const Shape q_shape{recipe_.batch, x.shape[1], heads_, head_size_};
  const Shape k_shape{recipe_.batch, x.shape[1], key_value_heads_, head_size_};
  Tensor q = reshape(tape_, project(layer.q, x), q_shape);
  q = rotate_pairs(q, rotation);
  q = transpose(tape_, q, 1, 2);
  Tensor k = project(layer.k, x);
  Tensor v = project(layer.v, x);
  k = rotate_pairs(reshape(tape_, k, k_shape), rotation);
  if (model_.expanded_key_value && heads_ != key_value_heads_) {
    k = all_heads_of(k);
    v = all_heads_of(v);
  } else {
    k = transpose(tape_, k, 1, 2);
    v = heads_of(v, key_value_heads_);
  }
  const Tensor y = contiguous(tape_, transpose(tape_, attend(q, k, v), 1, 2));
  return project(layer.out, reshape(tape_, y, {recipe_.batch, x.shape[1], heads_ * head_size_}));
}

Tensor Transformer::plain_attention(const Tensor& q, const Tensor& k, const Tensor& v) {
  Tensor scores = batched_matmul(tape_, q, transpose(tape_, k, -1, -2));
  scores = mul_number(tape_, scores);
  if (model_.architecture == Architecture::decoder) scores = masked_fill(tape_, scores, mask_);
  scores = softmax(tape_, autocast_fp32(tape_, scores));
  scores = dropout(tape_, scores, model_.dropout);
  return batched_matmul(tape_, scores, v);
}

// Megatron-LM's CoreAttention.
Tensor Transformer::fused_plain_attention(const Tensor& q, const Tensor& k, const Tensor& v) {
  Tensor scores = strided_matmul(tape_, "aten::baddbmm", q, transpose(tape_, k, -1, -2));
  scores = masked_softmax(tape_, scores);
  scores = dropout(tape_, scores, model_.dropout);
  return strided_matmul(tape_, "aten::bmm", scores, v);
}

// transformers/modeling_flash_attention_utils.py, _is_packed_sequence: positions counted up from the least of them are
// compared with what is given, and the host asks whether any differs.
void Transformer::look_at_positions() {
  if (!recipe_.synchronizing_attention) return;
  Tensor counted = fill(tape_, "aten::arange", {sequence_}, DataType::int64);
  Tensor differs = elementwise(tape_, "aten::sub", {&counted}, counted.shape, counted.type);
  counted.reset();
  Tensor any = elementwise(tape_, "aten::sum", {&differs}, {}, DataType::int64);
  differs.reset();
  read_on_host(tape_, any);
}

Tensor Transformer::attend(const Tensor& q, const Tensor& k, const Tensor& v) {
  if (recipe_.checkpoint != ActivationCheckpoint::selective) return attend_whole(q, k, v);
  return checkpoint(
      tape_, q, [this, k, v](const Tensor& queries) { return attend_whole(queries, k, v); }, second_run());
}

// Each head of keys or values copied for all queries that share it: products of PyTorch's operators take no fewer
// (repeat_kv of transformers/models/llama/modeling_llama.py; Megatron-LM's DotProductAttention repeats them, too).
Tensor Transformer::repeated_heads(const Tensor& x) {
  const std::int64_t batch = x.shape[0], heads = x.shape[1], length = x.shape[2], size = x.shape[3];
  if (heads == heads_) return x;
  const Tensor apart = reshape(tape_, x, {batch, heads, 1, length, size});
  return reshape(tape_, expand(tape_, apart, {batch, heads, heads_ / heads, length, size}),
                 {batch, heads_, length, size});
}

Tensor Transformer::attend_whole(const Tensor& q, const Tensor& k, const Tensor& v) {
  if (recipe_.attention == Attention::plain) {
    const Tensor keys = repeated_heads(k), values = repeated_heads(v);
    return recipe_.fused_kernels ? fused_plain_attention(q, keys, values) : plain_attention(q, keys, values);
  }
  return fused_attention(tape_, q, k, v, model_.architecture == Architecture::decoder,
                         attention_kernel(recipe_.attention));
}

Tensor Transformer::attention(const Layer& layer, const Tensor& x, const Rotation& rotation) {
  const ModuleScope scope(tape_, "attention");
  if (model_.positions == Positions::rotary && model_.rotary_in_fp32) return pairwise_attention(layer, x, rotation);
  const std::int64_t queries = heads_ * head_size_, keys = key_value_heads_ * head_size_;
  Tensor q, k, v;
  if (model_.joint_query_key_value) {
    const std::int64_t sizes[] = {queries, keys, keys};
    const Tensors parts = split(tape_, project(layer.qkv, x), -1, sizes);
    q = heads_of(parts[0], heads_, &layer.query_norm);
    k = heads_of(parts[1], key_value_heads_, &layer.key_norm);
    v = heads_of(parts[2], key_value_heads_);
  } else if (multiplies_together()) {
    const Tensors parts = products_together(x, {&layer.q, &layer.k, &layer.v});
    q = heads_of(parts[0], heads_, &layer.query_norm);
    k = heads_of(parts[1], key_value_heads_, &layer.key_norm);
    v = heads_of(parts[2], key_value_heads_);
  } else {
    const Tensor in = input_of_columns(x);
    q = heads_of(project(layer.q, in), heads_, &layer.query_norm);
    k = heads_of(project(layer.k, in), key_value_heads_, &layer.key_norm);
    v = heads_of(project(layer.v, in), key_value_heads_);
  }
  // Megatron-LM's fused rotation turns queries and keys in one kernel, too (apply_rope_fusion).
  if (model_.positions == Positions::rotary && (recipe_.liger_kernels || joins_columns())) {
    rotate_liger(tape_, q, k, {rotation.cosine, rotation.sine});
  } else if (model_.positions == Positions::rotary) {
    Tensor turned_q = rotate(q, rotation);
    k = rotate(k, rotation);
    q = std::move(turned_q);
  }
  look_at_positions();
  Tensor y = attend(q, k, v);
  const Projection out =
      recipe_.fused_kernels ? Projection{layer.out.name, layer.out.weight, nullptr, layer.out.split} : layer.out;
  Tensor result = project(out, reshape(tape_, transpose(tape_, y, 1, 2), {recipe_.batch, y.shape[2], queries}));
  for (Tensor* t : {&q, &k, &v, &y}) t->reset();  // in the order in which Python clears a frame
  return result;
}

}  // namespace memwall
