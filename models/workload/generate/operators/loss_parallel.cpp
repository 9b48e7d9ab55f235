#include "models/workload/generate/operators/loss_parallel.h"

#include "models/workload/generate/operators/kernel_work.h"

namespace memwall {
namespace {

constexpr Bytes kTargetBytes = 8, kNumberBytes = 4, kMaskBytes = 1;

Tensor over_rows(Tape& t, std::string_view name, const Tensor& x) {
  const auto [rows, width] = rows_of(x);
  Tensor y = t.make(name, {rows, 1}, x.type);
  TapeKernel work;
  work.name = name;
  work.operator_class = OperatorClass::reduction;
  work.type = x.type;
  work.flops = static_cast<double>(x.elements());
  work.shape = {rows, width};
  t.kernel(work, {&x}, {&y});
  return y;
}

// One element of each row.
void of_each_row(Tape& t, std::string_view name, std::initializer_list<const Tensor*> reads, const Tensor& to,
                 std::int64_t rows) {
  TapeKernel work;
  work.name = name;
  work.operator_class = OperatorClass::memory;
  work.type = DataType::fp32;
  work.shape = {rows};
  work.bytes = rows * (2 * kNumberBytes + kTargetBytes + kMaskBytes);
  t.kernel(work, reads, {&to});
}

struct OwnTargets {
  Tensor mask, index;
};

// _MaskPartial._partition_value: which targets are words of this rank, and their numbers here.
OwnTargets own_targets(Tape& t, const Tensor& targets) {
  const Shape shape{targets.elements()};
  OwnTargets own;
  const Tensor safe = elementwise(t, "aten::where", {&targets}, shape, DataType::int64);
  own.mask = elementwise(t, "aten::bitwise_or", {&safe}, shape, DataType::boolean);
  own.index = elementwise(t, "aten::sub", {&safe}, shape, DataType::int64);
  kernel_into(t, "aten::index_put_", OperatorClass::memory, {&own.mask}, own.index);
  return own;
}

// _nll_loss_and_log_softmax_backward: (grad_input + exp(x)) * grad_output.
Tensor loss_parallel_backward(Tape& t, GradientFunction& node, const Tensor& given) {
  const NoGradientScope no_gradient(t);
  const Tensor x = node.take_saved(t, 0), targets = node.take_saved(t, 1);
  const std::int64_t rows = rows_of(x).rows;
  const Tensor each = elementwise(t, "aten::div", {&given}, {rows, 1}, DataType::fp32);
  const Tensor gradient = fill(t, "aten::zeros_like", x.shape, x.type);
  const OwnTargets own = own_targets(t, targets);
  of_each_row(t, "aten::index_put_", {&gradient, &own.mask, &own.index}, gradient, rows);
  Tensor sum;
  {
    const Tensor probabilities = elementwise(t, "aten::exp", {&x}, x.shape, x.type);
    sum = elementwise(t, "aten::add", {&gradient, &probabilities}, x.shape, x.type);
  }
  return elementwise(t, "aten::mul", {&sum, &each}, x.shape, x.type);
}

// _log_softmax
Tensor log_softmax(Tape& t, Communicator& group, const Tensor& x) {
  const Tensor most = over_rows(t, "aten::amax", x);
  group.all_reduce(most);
  const Tensor shifted = elementwise(t, "aten::sub", {&x, &most}, x.shape, x.type);
  Tensor sums;
  {
    const Tensor exponentials = elementwise(t, "aten::exp", {&shifted}, x.shape, x.type);
    sums = over_rows(t, "aten::sum", exponentials);
  }
  group.all_reduce(sums);
  const Tensor logarithms = elementwise(t, "aten::log", {&sums}, sums.shape, sums.type);
  return elementwise(t, "aten::sub", {&shifted, &logarithms}, x.shape, x.type);
}

}  // namespace

Tensor loss_parallel(Tape& tape, TensorParallel& parallel, const Tensor& given, const Tensor& targets_given) {
  const auto [rows, width] = rows_of(given);
  const Tensor logits = reshape(tape, given, {rows, width}), targets = reshape(tape, targets_given, {rows});
  Tape::Function f = tape.record({&logits}, {}, [](Tape& t, GradientFunction& node, Tensors& g) {
    return Tensors{loss_parallel_backward(t, node, g[0])};
  });
  Tensor loss, x;
  {
    const NoGradientScope no_gradient(tape);
    x = log_softmax(tape, parallel.group, logits);
    const OwnTargets own = own_targets(tape, targets);
    const Tensor chosen = tape.make("aten::gather", {rows, 1}, DataType::fp32);
    of_each_row(tape, "aten::gather", {&x, &own.index}, chosen, rows);
    kernel_into(tape, "aten::index_put_", OperatorClass::memory, {&own.mask}, chosen);
    parallel.group.all_reduce(chosen);
    const Tensor losses = elementwise(tape, "aten::neg", {&chosen}, {rows}, DataType::fp32);
    const Tensor sum = tape.make("aten::sum", {}, DataType::fp32);
    tape.kernel(whole_reduction("aten::sum", DataType::fp32, rows), {&losses}, {&sum});
    loss = elementwise(tape, "aten::div", {&sum}, {}, DataType::fp32);
  }
  Tape::result(f, loss);
  tape.save(f, x);
  tape.save(f, targets);
  return loss;
}

}  // namespace memwall
