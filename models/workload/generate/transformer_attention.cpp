// Attention: queries, keys and values by one product or by three, rotated or not, with fused kernels or plain.
#include <utility>

#include "models/workload/generate/operators.h"
#include "models/workload/generate/transformer.h"

namespace memwall {
namespace {

Tensor two_of(Tape& tape, const Tensor& x) {
  const Tensors halves{x, x};
  return cat(tape, halves, -1);
}

}  // namespace

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

// [batch, length, heads * size] to [batch, heads, length, size].
Tensor Transformer::heads_of(const Tensor& x, std::int64_t heads) {
  return transpose(tape_, reshape(tape_, x, {recipe_.batch, x.shape[1], heads, head_size_}), 1, 2);
}

Tensor Transformer::plain_attention(const Tensor& q, const Tensor& k, const Tensor& v) {
  Tensor scores = batched_matmul(tape_, q, transpose(tape_, k, -1, -2));
  scores = mul_number(tape_, scores);
  scores = softmax(tape_, scores);
  scores = dropout(tape_, scores, model_.dropout);
  return batched_matmul(tape_, scores, v);
}

Tensor Transformer::attend(const Tensor& q, const Tensor& k, const Tensor& v) {
  if (recipe_.attention == Attention::plain) return plain_attention(q, k, v);
  return flash_attention(tape_, q, k, v, model_.architecture == Architecture::decoder);
}

Tensor Transformer::attention(const Layer& layer, const Tensor& x, const Rotation& rotation) {
  const ModuleScope scope(tape_, "attention");
  const std::int64_t queries = heads_ * head_size_, keys = key_value_heads_ * head_size_;
  Tensor q, k, v;
  if (model_.joint_query_key_value) {
    const std::int64_t sizes[] = {queries, keys, keys};
    const Tensors parts = split(tape_, project(layer.qkv, x), -1, sizes);
    q = heads_of(parts[0], heads_);
    k = heads_of(parts[1], key_value_heads_);
    v = heads_of(parts[2], key_value_heads_);
  } else {
    q = heads_of(project(layer.q, x), heads_);
    k = heads_of(project(layer.k, x), key_value_heads_);
    v = heads_of(project(layer.v, x), key_value_heads_);
  }
  if (model_.positions == Positions::rotary) {
    Tensor turned_q = rotate(q, rotation);
    k = rotate(k, rotation);
    q = std::move(turned_q);
  }
  const Tensor y = attend(q, k, v);
  return project(layer.out, reshape(tape_, transpose(tape_, y, 1, 2), {recipe_.batch, x.shape[1], queries}));
}

}  // namespace memwall
