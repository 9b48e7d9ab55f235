#include "models/workload/generate/native/compiled_kernels.h"

#include <utility>

#include "models/workload/flops.h"
#include "models/workload/generate/operators/operators.h"

namespace memwall {
namespace {

Tensor product(Tape& tape, std::string_view name, std::int64_t m, std::int64_t n, std::int64_t k,
               std::initializer_list<const Tensor*> reads, const Shape& shape, DataType type) {
  Tensor y = tape.make(name, shape, type);
  TapeKernel work;
  work.name = name;
  work.operator_class = OperatorClass::gemm;
  work.type = (*reads.begin())->type == DataType::fp8 ? DataType::fp8 : type;
  work.flops = gemm_flops(static_cast<double>(m), static_cast<double>(n), static_cast<double>(k));
  work.shape = {1, m, n, k};
  tape.kernel(work, reads, {&y});
  return y;
}

constexpr std::string_view kScaled = "aten::_scaled_mm";

Shape with_last(Shape shape, std::int64_t last) {
  shape.back() = last;
  return shape;
}

}  // namespace

void fused_kernel(Tape& tape, const FusedKernel& kernel, std::initializer_list<const Tensor*> reads,
                  std::initializer_list<const Tensor*> writes) {
  TapeKernel work;
  work.name = kernel.name;
  work.operator_class = kernel.operator_class;
  const Tensor& first = **writes.begin();
  work.type = first.type;
  const bool rows = kernel.rows != 0;
  work.shape = rows ? Shape{kernel.rows, kernel.width} : Shape{first.elements()};
  work.flops = kernel.flops_per_element * static_cast<double>(rows ? kernel.rows * kernel.width : first.elements());
  tape.kernel(work, reads, writes);
}

Tensor fused(Tape& tape, const FusedKernel& kernel, std::initializer_list<const Tensor*> reads, const Shape& shape,
             DataType type) {
  Tensor y = tape.make(kernel.name, shape, type);
  fused_kernel(tape, kernel, reads, {&y});
  return y;
}

Tensor compiled_linear(Tape& tape, const Tensor& x, const Tensor& weight, const Tensor& bias) {
  const std::int64_t k = x.shape.back(), n = weight.shape[0], rows = x.elements() / k;
  if (!bias) return product(tape, "aten::mm", rows, n, k, {&x, &weight}, with_last(x.shape, n), x.type);
  return product(tape, "aten::addmm", rows, n, k, {&bias, &x, &weight}, with_last(x.shape, n), x.type);
}

Tensor gradient_of_input(Tape& tape, const Tensor& gradient, const Tensor& weight) {
  const std::int64_t n = weight.shape[0], k = weight.shape[1], rows = gradient.elements() / n;
  return product(tape, "aten::mm", rows, k, n, {&gradient, &weight}, with_last(gradient.shape, k), gradient.type);
}

Tensor gradient_of_weight(Tape& tape, const Tensor& gradient, const Tensor& x, const Tensor& weight) {
  const std::int64_t n = weight.shape[0], k = weight.shape[1], rows = gradient.elements() / n;
  return product(tape, "aten::mm", n, k, rows, {&gradient, &x}, weight.shape, gradient.type);
}

Tensor gradient_of_bias(Tape& tape, const Tensor& gradient, const Tensor& bias) {
  const std::int64_t n = bias.elements(), rows = gradient.elements() / n;
  return fused(tape, {"triton::fused_sum", OperatorClass::reduction, 1, n, rows}, {&gradient}, bias.shape, bias.type);
}

Tensor cast_to_fp8(Tape& tape, const Tensor& x) {
  const Tensor most = tape.make("triton::fused_amax", {}, DataType::fp32);
  fused_kernel(tape, {"triton::fused_amax", OperatorClass::reduction, 1, 1, x.elements()}, {&x}, {&most});
  return fused(tape, {"triton::fused_to_fp8", OperatorClass::elementwise, 2}, {&x, &most}, x.shape, DataType::fp8);
}

Tensor linear_of_fp8(Tape& tape, const Tensor& x, const Tensor& weight, const Tensor& bias) {
  const std::int64_t k = x.shape.back(), n = weight.shape[0], rows = x.elements() / k;
  if (!bias) return product(tape, kScaled, rows, n, k, {&x, &weight}, with_last(x.shape, n), DataType::bf16);
  return product(tape, kScaled, rows, n, k, {&x, &weight, &bias}, with_last(x.shape, n), DataType::bf16);
}

Tensor input_gradient_of_fp8(Tape& tape, const Tensor& gradient, const Tensor& weight) {
  const std::int64_t n = weight.shape[0], k = weight.shape[1], rows = gradient.elements() / n;
  return product(tape, kScaled, rows, k, n, {&gradient, &weight}, with_last(gradient.shape, k), DataType::bf16);
}

Tensor weight_gradient_of_fp8(Tape& tape, const Tensor& gradient, const Tensor& x, const Tensor& weight) {
  const std::int64_t n = weight.shape[0], k = weight.shape[1], rows = gradient.elements() / n;
  return product(tape, kScaled, n, k, rows, {&gradient, &x}, weight.shape, weight.type);
}

Tensor compiled_cross_entropy(Tape& tape, Tensor given, const Tensor& targets_given) {
  const Tensor logits = reshape(tape, given, {given.elements() / given.shape.back(), given.shape.back()});
  given.reset();
  const std::int64_t rows = logits.shape[0], width = logits.shape[1];
  const Tensor targets = reshape(tape, targets_given, {rows});
  auto f = tape.record({&logits}, {}, [rows, width](Tape& t, GradientFunction& node, Tensors& g) {
    const CompiledScope scope(t);
    const Tensor x = node.take_saved(t, 0), most = node.take_saved(t, 1), sums = node.take_saved(t, 2);
    const Tensor y = node.take_saved(t, 3), count = node.take_saved(t, 4);
    return Tensors{fused(t, {"triton::fused_cross_entropy_backward", OperatorClass::reduction, 6, rows, width},
                         {&g[0], &x, &most, &sums, &y, &count}, x.shape, x.type)};
  });
  const CompiledScope scope(tape);
  constexpr std::string_view kRows = "triton::fused_log_softmax", kMean = "triton::fused_nll_loss";
  const Tensor most = tape.make(kRows, {rows, 1}, DataType::fp32), sums = tape.make(kRows, {rows, 1}, DataType::fp32);
  fused_kernel(tape, {kRows, OperatorClass::reduction, 5, rows, width}, {&logits}, {&most, &sums});
  Tensor loss = tape.make(kMean, {}, DataType::fp32);
  const Tensor count = tape.make(kMean, {}, DataType::fp32);
  TapeKernel work;
  work.name = kMean;
  work.operator_class = OperatorClass::reduction;
  work.type = DataType::fp32;
  work.shape = {1, rows};
  work.flops = 3 * static_cast<double>(rows);
  work.bytes = rows * (4 + 4 + 8 + bytes_of(logits.type)) + 8;  // one logit of each row
  tape.kernel(work, {&logits, &most, &sums, &targets}, {&loss, &count});
  Tape::result(f, loss);
  for (const Tensor* saved : {&logits, &most, &sums, &targets, &count}) tape.save(f, *saved);
  return loss;
}

}  // namespace memwall
