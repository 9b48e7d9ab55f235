// BLOOM (transformers/models/bloom/modeling_bloom.py): biases by distance in place of positions, scores in memory.
#include <bit>
#include <utility>

#include "models/workload/generate/operators/operators.h"
#include "models/workload/generate/operators/operators_product.h"
#include "models/workload/generate/operators/untracked_kernel.h"
#include "models/workload/generate/transformer.h"

namespace memwall {
namespace {

// alibi + a b / sqrt(size), of [batch * heads, ...]
Tensor biased_product(Tape& tape, const Tensor& given, const Tensor& a, const Tensor& b) {
  const Tensor alibi = autocast_low(tape, given);
  const std::int64_t batch = a.shape[0], m = a.shape[1], k = a.shape[2], n = b.shape[2];
  auto f = tape.record({&a, &b}, {a, b}, [=](Tape& t, GradientFunction& node, Tensors& g) {
    const Tensor left = node.take_saved(t, 0), right = node.take_saved(t, 1);
    const auto scaled = [&](const Tensor& product) {
      return elementwise(t, "aten::mul", {&product}, product.shape, product.type);
    };
    Tensors gradients(2);
    t.count_calls(1);
    if (node.needs(0))
      gradients[0] = scaled(product(t, "aten::bmm", {batch, m, k, n}, {&g[0], &right}, {batch, m, k}, g[0].type));
    t.count_calls(1);
    if (node.needs(1))
      gradients[1] = scaled(product(t, "aten::bmm", {batch, k, n, m}, {&left, &g[0]}, {batch, k, n}, g[0].type));
    return gradients;
  });
  Tensor y = product(tape, "aten::baddbmm", {batch, m, n, k}, {&alibi, &a, &b}, {batch, m, n}, a.type);
  Tape::result(f, y);
  return y;
}

// Powers of a base: one series, and where heads are no power of two every other of a second.
Tensor alibi_slopes(Tape& tape, std::int64_t heads) {
  struct Series {
    Tensor base, powers, slopes;
  };
  const auto series = [&](std::int64_t count) {
    Series s;
    s.base = fill(tape, "aten::full", {}, DataType::fp32);
    s.powers = fill(tape, "aten::arange", {count}, DataType::int32);
    s.slopes = untracked(tape, {"aten::pow", OperatorClass::elementwise, DataType::fp32}, {&s.base, &s.powers}, {count},
                         DataType::fp32);
    return s;
  };
  const auto nearest = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(heads)));
  Series first = series(nearest), second;
  Tensor slopes = first.slopes;
  if (nearest != heads) {
    second = series(heads - nearest);
    slopes = cat(tape, Tensors{first.slopes, second.slopes}, 0);
    second.slopes.reset();
  }
  first.slopes.reset();
  for (Tensor* t : {&first.base, &first.powers, &second.base, &second.powers}) t->reset();
  return slopes;
}

}  // namespace

// BloomModel.forward; `slopes` live as long as the frame.
Tensor Transformer::alibi_of_positions(Tensor& slopes) {
  const NoGradientScope no_gradient(tape_);
  slopes = alibi_slopes(tape_, heads_);
  const Shape row{heads_, 1, sequence_}, rows{recipe_.batch * heads_, 1, sequence_};
  Tensor places = fill(tape_, "aten::arange", {sequence_}, DataType::int64);
  const Tensor one = untracked(tape_, {"aten::mul", OperatorClass::elementwise, DataType::fp32}, {&slopes, &places},
                               row, DataType::fp32);
  places.reset();
  const Tensor all =
      untracked(tape_, {"aten::repeat", OperatorClass::memory, DataType::fp32}, {&one}, rows, DataType::fp32);
  return cast(tape_, all, type_);
}

Tensor Transformer::bloom_attention(const Layer& layer, const Tensor& x, const LayerInputs& inputs) {
  const std::int64_t length = x.shape[1], rows = recipe_.batch * heads_;
  Tensor joint = reshape(tape_, project(layer.qkv, x), {recipe_.batch, length, heads_, 3, head_size_});
  const auto part = [&] { return transpose(tape_, select(tape_, joint, 3), 1, 2); };
  Tensor q = part(), k = part(), v = part();
  q = reshape(tape_, q, {rows, length, head_size_});
  k = transpose(tape_, reshape(tape_, k, {rows, length, head_size_}), -1, -2);
  v = reshape(tape_, v, {rows, length, head_size_});
  Tensor scores = biased_product(tape_, inputs.alibi, q, k);
  Tensor masked = add(tape_, reshape(tape_, scores, {recipe_.batch, heads_, length, length}), inputs.mask);
  Tensor probabilities = dropout(tape_, low_softmax(masked, q.type), model_.dropout);
  Tensor y;
  {
    const Tensor context = bmm(tape_, reshape(tape_, probabilities, {rows, length, length}), v);
    y = contiguous(tape_, transpose(tape_, reshape(tape_, context, {recipe_.batch, heads_, length, head_size_}), 1, 2));
  }
  Tensor result = project(layer.out, reshape(tape_, y, {recipe_.batch, length, heads_ * head_size_}));
  result = add(tape_, inputs.residual, drop("dropout1", result));
  for (Tensor* t : {&joint, &q, &k, &v, &scores, &masked}) t->reset();
  return result;
}

Tensor Transformer::run_bloom_layer(const Layer& layer, const Tensor& x, LayerInputs inputs) {
  inputs.residual = x;
  Tensor normed = normalize(layer.norm1, x);
  const Tensor attended = family_attention(layer, normed, inputs);
  normed = normalize(layer.norm2, attended);
  const Tensor fed = family_mlp(layer, normed);
  return add(tape_, attended, drop("dropout2", fed));
}

}  // namespace memwall
