// Falcon (transformers/models/falcon/modeling_falcon.py): one product gives queries and behind them keys and values, of
// one head or of each group of heads; attention and MLP read the same input.
#include <utility>

#include "models/workload/generate/operators/operators.h"
#include "models/workload/generate/operators/untracked_kernel.h"
#include "models/workload/generate/transformer.h"

namespace memwall {
namespace {

// A whole number of the host as a tensor on the device; the host waits for the copy.
Tensor copied_number(Tape& tape) {
  const Tensor number = tape.make_at("host", 0, "aten::lift_fresh", {1}, DataType::int64);
  tape.trace().storages[number.storage->id()].pinned = false;
  Tensor index = tape.make("aten::_to_copy", {1}, DataType::int64);
  Op copy;
  copy.kind = OpKind::copy;
  copy.wait_for = WaitFor::own_op;
  copy.bytes = number.bytes();
  copy.from = tape.trace().place("host");
  copy.to = tape.trace().place("hbm");
  copy.pageable = true;
  const Tensor* writes[] = {&index};
  tape.append(copy, "aten::_to_copy", {}, writes);  // what is read no operator has written
  return index;
}

// x[..., [i], :]: a list is an index on the device.
Tensor indexed_head(Tape& tape, const Tensor& x) {
  Shape shape = x.shape;
  shape[shape.size() - 2] = 1;
  const Tensor index = copied_number(tape);
  auto f = tape.record({&x}, {index}, [whole = x.shape](Tape& t, GradientFunction& node, Tensors& g) {
    const Tensor saved = node.take_saved(t, 0);
    const Tensor zeros = fill(t, "aten::new_zeros", whole, g[0].type);
    return Tensors{
        untracked(t, {"aten::index_put", OperatorClass::memory, g[0].type}, {&zeros, &saved, &g[0]}, whole, g[0].type)};
  });
  Tensor y = tape.make("aten::index", shape, x.type);
  TapeKernel work;
  work.name = "aten::index";
  work.operator_class = OperatorClass::memory;
  work.type = x.type;
  work.shape = {y.elements()};
  work.bytes = 2 * y.bytes() + index.bytes();
  tape.kernel(work, {&x, &index}, {&y});
  Tape::result(f, y);
  return y;
}

void changed_in_place(Tape& tape, std::string_view name, std::initializer_list<const Tensor*> reads, const Tensor& x) {
  kernel_into(tape, name, OperatorClass::elementwise, reads, x);
}

// x /= number
void divide_in_place(Tape& tape, Tensor& x) {
  auto f = tape.record({&x}, {}, [](Tape& t, GradientFunction&, Tensors& g) {
    return Tensors{elementwise(t, "aten::div", {&g[0]}, g[0].shape, g[0].type)};
  });
  changed_in_place(tape, "aten::div_", {&x}, x);
  Tape::result(f, x);
}

// x += y
void accumulate(Tape& tape, Tensor& x, const Tensor& y) {
  auto f = tape.record({&x, &y}, {}, [](Tape&, GradientFunction& node, Tensors& g) {
    return Tensors{node.needs(0) ? g[0] : Tensor(), node.needs(1) ? g[0] : Tensor()};
  });
  changed_in_place(tape, "aten::add_", {&x, &y}, x);
  Tape::result(f, x);
}

}  // namespace

// FalconAttention._split_heads: of groups each is copied for all queries that share it.
Tensors Transformer::falcon_heads(const Tensor& joint) {
  const std::int64_t batch = joint.shape[0], length = joint.shape[1], group = heads_ / key_value_heads_;
  if (key_value_heads_ == 1) {
    const Tensor apart = reshape(tape_, joint, {batch, length, heads_ + 2, head_size_});
    const Tensor q = narrow(tape_, apart, 2, 0, heads_);
    const Tensor k = indexed_head(tape_, apart);
    return {q, k, indexed_head(tape_, apart)};
  }
  const Tensor apart = reshape(tape_, joint, {batch, length, key_value_heads_, group + 2, head_size_});
  const Tensor q = narrow(tape_, apart, 3, 0, group);
  Tensor k = indexed_head(tape_, apart), v = indexed_head(tape_, apart);
  k = expand(tape_, k, q.shape);
  v = expand(tape_, v, q.shape);
  const Shape flat{batch, length, heads_, head_size_};
  Tensors heads{reshape(tape_, q, flat)};
  heads.push_back(reshape(tape_, k, flat));
  heads.push_back(reshape(tape_, v, flat));
  k.reset();
  v.reset();
  return heads;
}

// Softmax in the type of the data.
Tensor Transformer::falcon_scores(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask) {
  const auto of_all_heads = [&](const Tensor& x) {
    return x.shape[1] == heads_ ? x : expand(tape_, x, {x.shape[0], heads_, x.shape[2], x.shape[3]});
  };
  Tensor scores = batched_matmul(tape_, q, of_all_heads(transpose(tape_, k, -1, -2)));
  divide_in_place(tape_, scores);
  Tensor masked = add(tape_, scores, mask);
  Tensor probabilities = softmax(tape_, masked);
  masked.reset();
  scores = std::move(probabilities);
  return heads_behind_tokens(batched_matmul(tape_, scores, of_all_heads(v)));
}

Tensor Transformer::falcon_attention(const Layer& layer, const Tensor& x, const Rotation& rotation,
                                     const Tensor& mask) {
  Tensor joint = project(layer.qkv, x), q, k, v;
  {
    const Tensors heads = falcon_heads(joint);
    q = transpose(tape_, heads[0], 1, 2);
    k = transpose(tape_, heads[1], 1, 2);
    v = transpose(tape_, heads[2], 1, 2);
  }
  rotate_both(q, k, rotation);
  look_at_positions();
  Tensor result = family_output(layer, family_attend(q, k, v, mask));
  for (Tensor* t : {&joint, &q, &k, &v}) t->reset();
  return result;
}

Tensor Transformer::run_falcon_layer(const Layer& layer, const Tensor& x, const LayerInputs& inputs) {
  const bool shared = model_.layer_order == LayerOrder::parallel_shared_norm;
  Tensor of_attention = normalize(layer.norm1, x);
  Tensor of_mlp = shared ? of_attention : normalize(layer.norm2, x);
  Tensor attended = family_attention(layer, of_attention, inputs);
  Tensor fed = family_mlp(layer, of_mlp);
  accumulate(tape_, fed, attended);
  Tensor sum = add(tape_, x, drop("dropout", fed));
  for (Tensor* t : {&of_attention, &of_mlp, &attended, &fed}) t->reset();
  return sum;
}

}  // namespace memwall
