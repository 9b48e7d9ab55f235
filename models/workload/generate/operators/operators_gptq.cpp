#include "models/workload/generate/operators/operators_gptq.h"

#include "models/workload/generate/operators/operators.h"
#include "models/workload/generate/operators/operators_product.h"

namespace memwall {
namespace {

constexpr std::int64_t kGroup = 128;

std::int64_t groups(std::int64_t k) { return (k + kGroup - 1) / kGroup; }

// `read`: bytes of what it reads.
Tensor elementwise(Tape& tape, std::string_view name, std::initializer_list<const Tensor*> reads, Tensor y,
                   std::int64_t read) {
  TapeKernel work;
  work.bytes = read + y.bytes();
  work.name = name;
  work.operator_class = OperatorClass::elementwise;
  work.type = y.type;
  work.flops = static_cast<double>(y.elements());
  work.shape = {y.elements()};
  tape.kernel(work, reads, {&y});
  return y;
}

// Four bits of each element, by a shift that makes 32-bit numbers, a cast and a mask in place.
Tensor unpacked(Tape& tape, const Tensor& packed, const Shape& shape) {
  tape.count_calls(2);  // unsqueeze, expand
  constexpr std::string_view kShift = "aten::bitwise_right_shift", kCast = "aten::_to_copy",
                             kMask = "aten::bitwise_and";
  Tensor wide = tape.make(kShift, shape, DataType::int32);
  wide = elementwise(tape, kShift, {&packed}, wide, wide.elements() / 2);
  Tensor narrow = elementwise(tape, kCast, {&wide}, tape.make(kCast, shape, DataType::int8), wide.bytes());
  return elementwise(tape, kMask, {&narrow}, narrow, narrow.bytes());
}

Tensor dequantized(Tape& tape, const Tensor& weight, std::int64_t n, std::int64_t k) {
  constexpr std::string_view kAdd = "aten::add", kSub = "aten::sub", kMul = "aten::mul";
  Tensor zeros = unpacked(tape, weight, {groups(k), n});
  zeros = elementwise(tape, kAdd, {&zeros}, tape.make(kAdd, {groups(k), n}, DataType::int8), zeros.bytes());
  Tensor y = unpacked(tape, weight, {k, n});
  y = elementwise(tape, kSub, {&y, &zeros}, tape.make(kSub, {k, n}, DataType::int8), y.bytes() + zeros.bytes());
  tape.count_calls(3);  // reshape of zeros, scales and weight
  return elementwise(tape, kMul, {&weight, &y}, tape.make(kMul, {k, n}, DataType::fp16), y.bytes() + 2 * zeros.bytes());
}

}  // namespace

std::int64_t gptq_bytes(std::int64_t n, std::int64_t k) {
  return n * k / 2 + groups(k) * n * 2 + groups(k) * n / 2 + 4 * k;
}

Tensor linear_gptq(Tape& tape, const Tensor& x_given, const Tensor& weight, std::int64_t n) {
  const Tensor x = contiguous(tape, x_given);
  const std::int64_t k = x.shape.back(), rows = x.elements() / k;
  const Tensor wide = dequantized(tape, weight, n, k);
  Tape::Function f =
      tape.record({&x}, {wide}, [n, k, rows, shape = x.shape](Tape& t, GradientFunction& node, Tensors& g) {
        const Tensor gradient = contiguous(t, g[0]), kept = node.take_saved(t, 0);
        t.count_calls(1);
        return Tensors{product(t, "aten::mm", {1, rows, k, n}, {&gradient, &kept}, shape, gradient.type)};
      });
  Shape shape = x.shape;
  shape.back() = n;
  tape.count_calls(x.dimensions() > 2 ? 2 : 0);
  Tensor y = product(tape, "aten::mm", {1, rows, n, k}, {&x, &wide}, shape, x.type);
  Tape::result(f, y);
  return y;
}

}  // namespace memwall
