#include "models/workload/generate/operators/operators_fused.h"

#include "models/workload/flops.h"
#include "models/workload/generate/operators/kernel_work.h"
#include "models/workload/generate/operators/operators.h"

namespace memwall {
namespace {

Tensor product(Tape& tape, std::string_view name, std::int64_t m, std::int64_t n, std::int64_t k,
               std::initializer_list<const Tensor*> reads, const Shape& shape, DataType type) {
  Tensor y = tape.make(name, shape, type);
  TapeKernel work;
  work.name = name;
  work.operator_class = OperatorClass::gemm;
  work.type = type;
  const std::int64_t batch = shape[0] * shape[1];
  work.flops =
      gemm_flops(static_cast<double>(m), static_cast<double>(n), static_cast<double>(k), static_cast<double>(batch));
  work.shape = {batch, m, n, k};
  tape.kernel(work, reads, {&y});
  return y;
}

void elementwise_kernel(Tape& tape, std::string_view name, double flops, std::initializer_list<const Tensor*> reads,
                        std::initializer_list<const Tensor*> writes) {
  const Tensor& y = **writes.begin();
  TapeKernel work;
  work.name = name;
  work.operator_class = OperatorClass::elementwise;
  work.type = y.type;
  work.flops = flops * static_cast<double>(y.elements());
  work.shape = {y.elements()};
  tape.kernel(work, reads, writes);
}

void row_kernel(Tape& tape, std::string_view name, double flops, const Tensor& rows,
                std::initializer_list<const Tensor*> reads, std::initializer_list<const Tensor*> writes) {
  TapeKernel work;
  work.name = name;
  work.operator_class = OperatorClass::reduction;
  work.type = rows.type;
  work.flops = flops * static_cast<double>(rows.elements());
  work.shape = {rows.elements() / rows.shape.back(), rows.shape.back()};
  tape.kernel(work, reads, writes);
}

Tensor bias_gradient(Tape& tape, const Tensor& g, const Tensor& bias) {
  const Tensor rows = tape.view(g, {g.elements() / g.shape.back(), g.shape.back()}, {g.shape.back(), 1});
  return sum_to(tape, rows, bias.shape);
}

}  // namespace

Tensor strided_matmul(Tape& tape, std::string_view name, const Tensor& a, const Tensor& b) {
  const std::int64_t m = a.size(2), k = a.size(3), n = b.size(3);
  auto f = tape.record({&a, &b}, {b, a}, [=](Tape& t, GradientFunction& node, Tensors& g) {
    const Tensor other = node.take_saved(t, 0), self = node.take_saved(t, 1);
    Tensors gradients(2);
    if (node.needs(1)) gradients[1] = product(t, "aten::bmm", k, n, m, {&self, &g[0]}, other.shape, g[0].type);
    if (node.needs(0)) gradients[0] = product(t, "aten::bmm", m, k, n, {&g[0], &other}, self.shape, g[0].type);
    return gradients;
  });
  Tensor y = product(tape, name, m, n, k, {&a, &b}, {a.shape[0], a.shape[1], m, n}, a.type);
  Tape::result(f, y);
  return y;
}

Tensor masked_softmax(Tape& tape, const Tensor& scores) {
  constexpr std::string_view kName = "megatron::scaled_upper_triang_masked_softmax";
  auto f = tape.record({&scores}, {}, [](Tape& t, GradientFunction& node, Tensors& g) {
    const Tensor y = node.take_saved(t, 0);
    row_kernel(t, "megatron::scaled_upper_triang_masked_softmax_backward", 5, y, {&g[0], &y}, {&g[0]});
    return Tensors{g[0]};
  });
  Tensor y = tape.make(kName, scores.shape, scores.type);
  row_kernel(tape, kName, 6, scores, {&scores}, {&y});
  Tape::result(f, y);
  tape.save(f, y);
  return y;
}

Tensor bias_gelu(Tape& tape, const Tensor& x, const Tensor& bias) {
  constexpr std::string_view kName = "megatron::bias_gelu";
  auto f = tape.record({&x, &bias}, {x, bias}, [](Tape& t, GradientFunction& node, Tensors& g) {
    const Tensor input = node.take_saved(t, 0), added = node.take_saved(t, 1);
    Tensors gradients(2);
    gradients[0] = t.make("megatron::bias_gelu_backward", input.shape, input.type);
    elementwise_kernel(t, "megatron::bias_gelu_backward", 2, {&g[0], &input, &added}, {&gradients[0]});
    if (node.needs(1)) gradients[1] = bias_gradient(t, gradients[0], added);
    return gradients;
  });
  Tensor y = tape.make(kName, x.shape, x.type);
  elementwise_kernel(tape, kName, 2, {&x, &bias}, {&y});
  Tape::result(f, y);
  return y;
}

Tensor bias_dropout_add(Tape& tape, const Tensor& x, const Tensor& bias, const Tensor& residual, double probability) {
  constexpr std::string_view kName = "megatron::bias_dropout_add";
  auto f = tape.record({&x, &bias, &residual}, {}, [](Tape& t, GradientFunction& node, Tensors& g) {
    const Tensor mask = node.saved.empty() ? Tensor() : node.take_saved(t, 0);
    Tensors gradients{g[0], {}, g[0]};
    if (mask) {
      gradients[0] = t.make("megatron::bias_dropout_add_backward", g[0].shape, g[0].type);
      elementwise_kernel(t, "megatron::bias_dropout_add_backward", 1, {&g[0], &mask}, {&gradients[0]});
    }
    Tensor like;
    like.shape = {g[0].shape.back()};
    if (node.needs(1)) gradients[1] = bias_gradient(t, gradients[0], like);
    return gradients;
  });
  Tensor y = tape.make(kName, x.shape, x.type), mask;
  if (probability > 0) mask = tape.make(kName, x.shape, DataType::boolean);
  elementwise_kernel(tape, kName, 3, {&x, &bias, &residual}, {&y, &mask});
  Tape::result(f, y);
  if (mask) tape.save(f, mask);
  return y;
}

Tensor vocabulary_cross_entropy(Tape& tape, const Tensor& given, const Tensor& targets_given) {
  const std::int64_t width = given.shape.back(), rows = given.elements() / width;
  const Tensor logits = reshape(tape, given, {rows, width}), targets = reshape(tape, targets_given, {rows});
  auto f = tape.record({&logits}, {}, [rows](Tape& t, GradientFunction& node, Tensors& g) {
    const Tensor softmax = node.take_saved(t, 0), chosen = node.take_saved(t, 1);
    const Tensor each = elementwise(t, "aten::div", {&g[0]}, {rows, 1}, DataType::fp32);
    TapeKernel one;  // one element of each row less 1
    one.name = "aten::index_put_";
    one.operator_class = OperatorClass::memory;
    one.type = DataType::fp32;
    one.shape = {rows};
    one.bytes = rows * (4 + 4 + 8);
    t.kernel(one, {&softmax, &chosen}, {&softmax});
    elementwise_kernel(t, "aten::mul_", 1, {&softmax, &each}, {&softmax});
    return Tensors{softmax};
  });
  Tensor work;
  Tensor losses;
  {
    const NoGradientScope scope(tape);
    const Shape column{rows, 1};
    const Tensor most = tape.make("aten::max", column, DataType::fp32);
    row_kernel(tape, "aten::max", 1, logits, {&logits}, {&most});
    work = copy_of(tape, logits.detached());
    elementwise_kernel(tape, "aten::sub_", 1, {&work, &most}, {&work});
    const Tensor chosen = tape.make("aten::index", column, DataType::fp32);
    TapeKernel pick;
    pick.name = "aten::index";
    pick.operator_class = OperatorClass::memory;
    pick.type = DataType::fp32;
    pick.shape = {rows};
    pick.bytes = rows * (4 + 4 + 8);
    tape.kernel(pick, {&work, &targets}, {&chosen});
    elementwise_kernel(tape, "aten::exp_", 1, {&work}, {&work});
    const Tensor sums = tape.make("aten::sum", column, DataType::fp32);
    row_kernel(tape, "aten::sum", 1, work, {&work}, {&sums});
    const Tensor logs = elementwise(tape, "aten::log", {&sums}, column, DataType::fp32);
    losses = elementwise(tape, "aten::sub", {&logs, &chosen}, column, DataType::fp32);
    elementwise_kernel(tape, "aten::div_", 1, {&work, &sums}, {&work});
  }
  Tensor loss = tape.make("aten::mean", {}, DataType::fp32);
  tape.kernel(whole_reduction("aten::mean", DataType::fp32, rows), {&losses}, {&loss});
  Tape::result(f, loss);
  tape.save(f, work);
  tape.save(f, targets);
  return loss;
}

}  // namespace memwall
