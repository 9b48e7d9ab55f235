#include "models/workload/generate/operators/operators_parallel.h"

#include <array>
#include <cassert>
#include <utility>

#include "models/workload/generate/operators/kernel_work.h"
#include "models/workload/generate/operators/operators_product.h"
#include "models/workload/generate/operators/overlapped_product.h"

namespace memwall {
namespace {

void touch(Tape& tape, std::string_view name, OperatorClass operator_class, double flops,
           std::initializer_list<const Tensor*> reads, std::initializer_list<const Tensor*> writes) {
  const bool reduces = operator_class == OperatorClass::reduction;
  const Tensor& counted = reduces ? **reads.begin() : **writes.begin();
  TapeKernel work;
  work.name = name;
  work.operator_class = operator_class;
  work.type = counted.type;
  work.flops = flops * static_cast<double>(counted.elements());
  work.shape = reduces ? Shape{counted.elements() / counted.shape.back(), counted.shape.back()}
                       : Shape{counted.elements()};
  tape.kernel(work, reads, writes);
}

// The gradient of a weight [n, k] from those of the results and from the inputs. Where the parameter adds up in a buffer
// in fp32 the product does so itself: it reads and writes that, and nobody gets a gradient.
Tensor weight_gradient(Tape& t, const GradientFunction::Edge& edge, const Tensor& g, const Tensor& x) {
  const auto [rows, n] = rows_of(g);
  const std::int64_t k = x.shape.back();
  const Parameter* leaf = edge.function->leaf;
  t.count_calls(2);
  if (!leaf || !leaf->products_add_up || !leaf->main_gradient)
    return product(t, "aten::mm", {1, n, k, rows}, {&g, &x}, {n, k}, g.type);
  TapeKernel work;
  work.name = "megatron::wgrad_gemm_accum_fp32";
  work.operator_class = OperatorClass::gemm;
  work.type = g.type;
  work.flops = 2.0 * static_cast<double>(n) * static_cast<double>(k) * static_cast<double>(rows);
  work.shape = {1, n, k, rows};
  t.kernel(work, {&g, &x, &leaf->main_gradient}, {&leaf->main_gradient});
  return {};
}

Tensor input_gradient(Tape& t, const Tensor& g, const Tensor& weight, Shape shape) {
  const auto [rows, n] = rows_of(g);
  const std::int64_t k = weight.shape[1];
  shape.back() = k;
  t.count_calls(1);
  return product(t, "aten::mm", {1, rows, k, n}, {&g, &weight}, shape, g.type);
}

Tensor column_bias_gradient(Tape& t, const Tensor& g) {
  const auto [rows, n] = rows_of(g);
  return sum_to(t, t.view(g, {rows, n}, {n, 1}), {n});
}

Tensor forward_product(Tape& tape, const Tensor& x, const Tensor& weight) {
  const auto [rows, k] = rows_of(x);
  Shape shape = x.shape;
  shape.back() = weight.shape[0];
  tape.count_calls(2);
  return product(tape, "aten::mm", {1, rows, weight.shape[0], k}, {&x, &weight}, shape, x.type);
}

// The product of `own` rows, gathered into `whole`, with a weight [n, k].
Tensor gathered_product(Tape& tape, TensorParallel& parallel, const Tensor& own, const Tensor& whole,
                        const Tensor& weight, std::array<std::int64_t, 2> nk) {
  const auto [n, k] = nk;
  Shape shape = whole.shape;
  shape.back() = n;
  const Tensor y = tape.make("aten::mm", shape, whole.type);
  tape.count_calls(2);
  gather_beside_product(tape, parallel, own, whole, {"aten::mm", whole.type, n, k, weight, {}}, y);
  return y;
}

// Where the inputs of a column are gathered.
Tensor gather_place(Tape& tape, const TensorParallel& parallel, const Tensor& x) {
  const Shape shape = parallel.group.gathered(x.shape);
  if (!parallel.gather_buffer) return tape.make("c10d::_allgather_base_", shape, x.type);
  Tensor view = parallel.gather_buffer;
  view.shape = shape;
  view.strides = contiguous_strides(shape);
  assert(view.bytes() <= parallel.gather_buffer.bytes());
  return view;
}

// LinearWithGradAccumulationAndAsyncCommunication.backward
Tensors column_backward(Tape& t, TensorParallel& p, GradientFunction& node, const Tensor& given) {
  const Tensor g = contiguous(t, given);
  const Tensor weight = node.take_saved(t, 0), x = node.take_saved(t, 1);
  Tensors gradients(node.edges.size());
  Tensor whole = x;
  if (p.by_tokens() && node.needs(1)) {
    whole = gather_place(t, p, x);
    p.group.start_all_gather(x, whole);
  }
  if (node.needs(0)) gradients[0] = input_gradient(t, g, weight, g.shape);
  if (p.by_tokens() && node.needs(1)) p.group.wait();
  Tensor summed;  // grad_input: the function holds it until it returns, behind handle.wait()
  if (node.needs(0)) {
    if (p.by_tokens())
      gradients[0] = p.group.start_reduce_scatter(summed = std::move(gradients[0]));
    else if (p.async_all_reduce)
      p.group.start_all_reduce(gradients[0]);
  }
  if (node.needs(1)) gradients[1] = weight_gradient(t, node.edges[1], g, whole);
  if (node.edges.size() == 3 && node.needs(2)) gradients[2] = column_bias_gradient(t, g);
  if (node.needs(0) && !p.by_tokens() && !p.async_all_reduce)
    p.group.all_reduce(gradients[0]);
  else if (node.needs(0))
    p.group.wait();
  return gradients;
}

Tensors row_backward(Tape& t, TensorParallel& p, GradientFunction& node, const Tensor& given) {
  const bool in_pieces = p.overlaps() && node.needs(0);
  Tensor g = contiguous(t, given);
  Tensors gradients(2);
  if (in_pieces) {
    const Tensor own = g, weight = node.take_saved(t, 0);
    g = t.make(p.symmetric_memory ? "symm_mem::fused_all_gather_matmul" : "transformer_engine::ring_exchange",
               p.group.gathered(own.shape), own.type);
    gradients[0] = gathered_product(t, p, own, g, weight, {weight.shape[1], weight.shape[0]});
  } else if (p.by_tokens()) {
    g = p.group.all_gather(g);
  }
  const Tensor weight = node.take_saved(t, 0), x = node.take_saved(t, 1);
  if (node.needs(0) && !in_pieces) gradients[0] = input_gradient(t, g, weight, g.shape);
  if (node.needs(1)) gradients[1] = weight_gradient(t, node.edges[1], g, x);
  return gradients;
}

}  // namespace

Tensor column_linear(Tape& tape, TensorParallel& parallel, const Tensor& x_given, const Tensor& weight,
                     const Tensor& bias) {
  const Tensor x = contiguous(tape, x_given);
  const auto backward = [&parallel](Tape& t, GradientFunction& node, Tensors& g) {
    return column_backward(t, parallel, node, g[0]);
  };
  Tape::Function f = bias ? tape.record({&x, &weight, &bias}, {weight, x}, backward)
                          : tape.record({&x, &weight}, {weight, x}, backward);
  Tensor y;
  if (parallel.overlaps()) {
    y = gathered_product(tape, parallel, x, gather_place(tape, parallel, x), weight,
                         {weight.shape[0], weight.shape[1]});
  } else {
    Tensor whole = x;
    if (parallel.by_tokens()) {
      whole = gather_place(tape, parallel, x);
      parallel.group.start_all_gather(x, whole);
      parallel.group.wait();
    }
    y = forward_product(tape, whole, weight);
  }
  if (bias) y = elementwise(tape, "aten::add", {&y, &bias}, y.shape, y.type);
  Tape::result(f, y);
  return y;
}

Tensor shared_input(Tape& tape, TensorParallel& parallel, const Tensor& x) {
  if (parallel.group.ranks() == 1) return x;
  auto f = tape.record({&x}, {}, [&parallel](Tape& t, GradientFunction&, Tensors& g) {
    if (parallel.by_tokens()) return Tensors{parallel.group.reduce_scatter(contiguous(t, g[0]))};
    parallel.group.all_reduce(g[0]);
    return Tensors{g[0]};
  });
  Tensor y = parallel.by_tokens() ? parallel.group.all_gather(x) : x.detached();
  Tape::result(f, y);
  return y;
}

Tensor joint_gate(Tape& tape, const Tensor& x, JointGate gate) {
  const bool silu = gate == JointGate::silu;
  const std::string_view name = silu ? "megatron::swiglu" : "megatron::geglu";
  auto f = tape.record({&x}, {x}, [silu](Tape& t, GradientFunction& node, Tensors& g) {
    const std::string_view backward = silu ? "megatron::swiglu_backward" : "megatron::geglu_backward";
    const Tensor given = node.take_saved(t, 0);
    Tensor gradient = t.make(backward, given.shape, given.type);
    touch(t, backward, OperatorClass::elementwise, 4, {&g[0], &given}, {&gradient});
    return Tensors{gradient};
  });
  Shape shape = x.shape;
  shape.back() /= 2;
  Tensor y = tape.make(name, shape, x.type);
  touch(tape, name, OperatorClass::elementwise, 3, {&x}, {&y});
  Tape::result(f, y);
  return y;
}

Tensor row_linear(Tape& tape, TensorParallel& parallel, const Tensor& x_given, const Tensor& weight) {
  const Tensor x = contiguous(tape, x_given);
  auto f = tape.record({&x, &weight}, {weight, x}, [&parallel](Tape& t, GradientFunction& node, Tensors& g) {
    return row_backward(t, parallel, node, g[0]);
  });
  Tensor y;
  if (parallel.overlaps()) {
    Shape shape = x.shape;
    shape.back() = weight.shape[0];
    const Tensor sums = tape.make("aten::mm", shape, x.type);
    tape.count_calls(2);
    y = scatter_beside_product(tape, parallel, x, {"aten::mm", x.type, weight.shape[0], weight.shape[1], weight, {}},
                               sums);
  } else {
    y = forward_product(tape, x, weight);
    if (parallel.by_tokens())
      y = parallel.group.reduce_scatter(y);
    else
      parallel.group.all_reduce(y);
  }
  Tape::result(f, y);
  return y;
}

// Words of others are asked for as row 0, and their rows filled with zeros (VocabParallelEmbedding.forward).
Tensor vocabulary_embedding(Tape& tape, TensorParallel& parallel, const Tensor& weight, const Tensor& words) {
  if (parallel.group.ranks() == 1) return embedding(tape, weight, words);
  Tensor mask, own;
  {
    const NoGradientScope scope(tape);
    Tensor below = tape.make("aten::lt", words.shape, DataType::boolean);
    touch(tape, "aten::lt", OperatorClass::elementwise, 1, {&words}, {&below});
    Tensor above = tape.make("aten::ge", words.shape, DataType::boolean);
    touch(tape, "aten::ge", OperatorClass::elementwise, 1, {&words}, {&above});
    mask = tape.make("aten::bitwise_or", words.shape, DataType::boolean);
    touch(tape, "aten::bitwise_or", OperatorClass::elementwise, 1, {&below, &above}, {&mask});
    below.reset();
    above.reset();
    own = tape.make("aten::sub", words.shape, words.type);
    touch(tape, "aten::sub", OperatorClass::elementwise, 1, {&words}, {&own});
    touch(tape, "aten::index_put_", OperatorClass::memory, 0, {&mask}, {&own});
  }
  Tensor rows = embedding(tape, weight, own);
  auto f = tape.record({&rows}, {mask}, [](Tape& t, GradientFunction& node, Tensors& g) {
    const Tensor of_others = node.take_saved(t, 0);
    Tensor gradient = copy_of(t, g[0]);
    touch(t, "aten::index_put_", OperatorClass::memory, 0, {&of_others}, {&gradient});
    return Tensors{gradient};
  });
  touch(tape, "aten::index_put_", OperatorClass::memory, 0, {&mask}, {&rows});
  Tensor result = rows.detached();
  Tape::result(f, result);
  return result;
}

Tensor summed_embedding(Tape& tape, TensorParallel& parallel, const Tensor& x, bool by_tokens) {
  if (parallel.group.ranks() == 1) return x;
  auto f = tape.record({&x}, {}, [&parallel, by_tokens](Tape&, GradientFunction&, Tensors& g) {
    return Tensors{by_tokens ? parallel.group.all_gather(g[0]) : g[0]};
  });
  Tensor y = x.detached();
  if (by_tokens)
    y = parallel.group.reduce_scatter(y);
  else
    parallel.group.all_reduce(y);
  Tape::result(f, y);
  return y;
}

Tensor own_tokens(Tape& tape, TensorParallel& parallel, const Tensor& x) {
  if (parallel.group.ranks() == 1) return x;
  auto f = tape.record({&x}, {}, [&parallel](Tape&, GradientFunction&, Tensors& g) {
    return Tensors{parallel.group.all_gather(g[0])};
  });
  Tensor part = tape.make("aten::clone", parallel.group.scattered(x.shape), x.type);
  TapeKernel work;
  work.name = "aten::clone";
  work.operator_class = OperatorClass::memory;
  work.type = x.type;
  work.shape = {part.elements()};
  work.bytes = 2 * part.bytes();
  tape.kernel(work, {&x}, {&part});
  Tape::result(f, part);
  return part;
}

Tensor split_cross_entropy(Tape& tape, TensorParallel& parallel, const Tensor& given, const Tensor& targets_given) {
  const std::int64_t width = given.shape.back(), rows = given.elements() / width;
  const Tensor logits = reshape(tape, given, {rows, width}), targets = reshape(tape, targets_given, {rows});
  auto f = tape.record({&logits}, {}, [rows](Tape& t, GradientFunction& node, Tensors& g) {
    const Tensor softmax = node.take_saved(t, 0), mask = node.take_saved(t, 1), own = node.take_saved(t, 2);
    const Tensor each = elementwise(t, "aten::div", {&g[0]}, {rows, 1}, DataType::fp32);
    TapeKernel one;  // one element of each row less 1, where the target is of this rank
    one.name = "aten::index_put_";
    one.operator_class = OperatorClass::memory;
    one.type = DataType::fp32;
    one.shape = {rows};
    one.bytes = rows * (4 + 4 + 8 + 1);
    t.kernel(one, {&softmax, &own, &mask}, {&softmax});
    touch(t, "aten::mul_", OperatorClass::elementwise, 1, {&softmax, &each}, {&softmax});
    return Tensors{softmax};
  });
  Tensor losses, mask, own;
  const Tensor work = logits.detached();
  {
    const NoGradientScope scope(tape);
    const Shape column{rows, 1};
    const Tensor most = tape.make("aten::max", column, DataType::fp32);
    touch(tape, "aten::max", OperatorClass::reduction, 1, {&logits}, {&most});
    parallel.group.all_reduce(most);
    touch(tape, "aten::sub_", OperatorClass::elementwise, 1, {&work, &most}, {&work});
    mask = tape.make("aten::bitwise_or", {rows}, DataType::boolean);
    touch(tape, "aten::bitwise_or", OperatorClass::elementwise, 3, {&targets}, {&mask});
    own = tape.make("aten::sub", {rows}, DataType::int64);
    touch(tape, "aten::sub", OperatorClass::elementwise, 1, {&targets, &mask}, {&own});
    const Tensor chosen = tape.make("aten::index", column, DataType::fp32);
    TapeKernel pick;
    pick.name = "aten::index";
    pick.operator_class = OperatorClass::memory;
    pick.type = DataType::fp32;
    pick.shape = {rows};
    pick.bytes = rows * (4 + 4 + 8);
    tape.kernel(pick, {&work, &own}, {&chosen});
    touch(tape, "aten::index_put_", OperatorClass::memory, 0, {&mask}, {&chosen});
    parallel.group.all_reduce(chosen);
    touch(tape, "aten::exp_", OperatorClass::elementwise, 1, {&work}, {&work});
    const Tensor sums = tape.make("aten::sum", column, DataType::fp32);
    touch(tape, "aten::sum", OperatorClass::reduction, 1, {&work}, {&sums});
    parallel.group.all_reduce(sums);
    const Tensor logs = elementwise(tape, "aten::log", {&sums}, column, DataType::fp32);
    losses = elementwise(tape, "aten::sub", {&logs, &chosen}, column, DataType::fp32);
    touch(tape, "aten::div_", OperatorClass::elementwise, 1, {&work, &sums}, {&work});
  }
  Tensor loss = tape.make("aten::mean", {}, DataType::fp32);
  tape.kernel(whole_reduction("aten::mean", DataType::fp32, rows), {&losses}, {&loss});
  Tape::result(f, loss);
  for (const Tensor* saved : {&work, static_cast<const Tensor*>(&mask), static_cast<const Tensor*>(&own)})
    tape.save(f, *saved);
  return loss;
}

}  // namespace memwall
