#include "models/workload/generate/operators/operators_fp8.h"

#include <fmt/format.h>

#include "models/workload/flops.h"
#include "models/workload/generate/operators/kernel_work.h"
#include "models/workload/generate/operators/operators.h"
#include "sim/error.h"

namespace memwall {
namespace {

Tensor largest(Tape& tape, const Tensor& x) {
  const Tensor magnitudes = elementwise(tape, "aten::abs", {&x}, x.shape, x.type);
  Tensor y = tape.make("aten::max", {}, x.type);
  tape.kernel(whole_reduction("aten::max", x.type, x.elements()), {&magnitudes}, {&y});
  return y;
}

// The largest number of fp8 over the largest of x, found in fp64.
Tensor scale_of(Tape& tape, const Tensor& x, Communicator* sharers) {
  const Tensor most = largest(tape, x);
  if (sharers) sharers->all_reduce(most);
  const Tensor wide = cast(tape, most, DataType::fp64);
  Tensor scale;
  {
    const Tensor bounded = elementwise(tape, "aten::clamp", {&wide}, {}, DataType::fp64);
    const Tensor inverse = elementwise(tape, "aten::reciprocal", {&bounded}, {}, DataType::fp64);
    scale = elementwise(tape, "aten::mul", {&inverse}, {}, DataType::fp64);
  }
  return cast(tape, scale, DataType::fp32);
}

}  // namespace

ScaledTensor to_fp8(Tape& tape, const Tensor& x, Communicator* sharers) {
  ScaledTensor y;
  y.scale = scale_of(tape, x, sharers);
  Tensor product;
  {
    const Tensor wide = cast(tape, x, DataType::fp32);
    product = elementwise(tape, "aten::mul", {&wide, &y.scale}, x.shape, DataType::fp32);
  }
  const Tensor bounded = elementwise(tape, "aten::clamp", {&product}, x.shape, DataType::fp32);
  y.values = cast(tape, bounded, DataType::fp8);
  return y;
}

Tensor scaled_mm(Tape& tape, const Tensor& a, const Tensor& left_scale, const Tensor& b, const Tensor& right_scale,
                 std::array<std::int64_t, 3> mnk, const Shape& shape) {
  tape.count_calls(1);
  const Tensor left_inverse = elementwise(tape, "aten::reciprocal", {&left_scale}, {}, DataType::fp32);
  const Tensor right_inverse = elementwise(tape, "aten::reciprocal", {&right_scale}, {}, DataType::fp32);
  Tensor y = tape.make("aten::_scaled_mm", shape, DataType::bf16);
  const auto [m, n, k] = mnk;
  TapeKernel work;
  work.name = "aten::_scaled_mm";
  work.operator_class = OperatorClass::gemm;
  work.type = DataType::fp8;
  work.flops = gemm_flops(static_cast<double>(m), static_cast<double>(n), static_cast<double>(k), 1);
  work.shape = {1, m, n, k};
  tape.kernel(work, {&a, &b, &left_inverse, &right_inverse}, {&y});
  return y;
}

void require_fp8_multiples(std::int64_t rows, std::int64_t n, std::int64_t k) {
  if (rows % 16 == 0 && n % 16 == 0 && k % 16 == 0) return;
  throw UsageError(
      fmt::format("`precision: fp8`: a product of {} x {} with {} x {}; expected multiples of 16, as its kernels do "
                  "(tokens of all sequences, widths).",
                  rows, k, k, n));
}

namespace {

// Both gradients, asked for or not: the function is torchao's own.
Tensors fp8_backward(Tape& t, GradientFunction& node, const Tensor& given, const Shape& x_shape) {
  const Tensor g = contiguous(t, given), x = node.take_saved(t, 0), weight = node.take_saved(t, 1);
  const std::int64_t n = weight.shape[0], k = weight.shape[1], rows = x.elements() / k;
  Tensors gradients(2);
  ScaledTensor gradient = to_fp8(t, g), factor = to_fp8(t, weight);
  {
    const Tensor columns = copy_of(t, factor.values, "aten::contiguous");  // the second factor by columns
    gradients[0] = scaled_mm(t, gradient.values, gradient.scale, columns, factor.scale, {rows, k, n}, x_shape);
  }
  ScaledTensor again = to_fp8(t, g), input = to_fp8(t, x);
  {
    Tensor turned = copy_of(t, again.values, "aten::contiguous");
    const Tensor columns = copy_of(t, input.values, "aten::contiguous");
    gradients[1] = scaled_mm(t, turned, again.scale, columns, input.scale, {n, k, rows}, weight.shape);
    turned.reset();  // Python drops it first
  }
  for (ScaledTensor* one : {&gradient, &factor, &again, &input}) one->reset();
  return gradients;
}

}  // namespace

Tensor linear_fp8(Tape& tape, const Tensor& x_given, const Tensor& weight, const Tensor& bias) {
  const Tensor x = contiguous(tape, x_given);
  const std::int64_t n = weight.shape[0], k = weight.shape[1], rows = x.elements() / k;
  require_fp8_multiples(rows, n, k);
  Tape::Function f =
      tape.record({&x, &weight}, {x, weight}, [shape = x.shape](Tape& t, GradientFunction& node, Tensors& g) {
        const NoGradientScope no_gradient(t);
        return fp8_backward(t, node, g[0], shape);
      });
  Tensor y;
  {
    const NoGradientScope no_gradient(tape);
    tape.count_calls(2);  // t, and the view before
    ScaledTensor input = to_fp8(tape, x), factor = to_fp8(tape, weight);
    Shape shape = x.shape;
    shape.back() = n;
    y = scaled_mm(tape, input.values, input.scale, factor.values, factor.scale, {rows, n, k}, shape);
    factor.reset();
    input.reset();
  }
  Tape::result(f, y);
  return bias ? add(tape, y, bias) : y;
}

}  // namespace memwall
