#include "models/workload/generate/operators/operators_nf4.h"

#include "models/workload/flops.h"
#include "models/workload/generate/operators/operators.h"

namespace memwall {
namespace {

Tensor mm(Tape& tape, const Tensor& a, const Tensor& b, std::int64_t m, std::int64_t n, std::int64_t k,
          const Shape& shape) {
  Tensor y = tape.make("aten::mm", shape, a.type);
  TapeKernel work;
  work.name = "aten::mm";
  work.operator_class = OperatorClass::gemm;
  work.type = a.type;
  work.flops = gemm_flops(static_cast<double>(m), static_cast<double>(n), static_cast<double>(k), 1);
  work.shape = {1, m, n, k};
  tape.kernel(work, {&a, &b}, {&y});
  return y;
}

}  // namespace

Tensor dequantized_nf4(Tape& tape, const Tensor& weight, std::int64_t n, std::int64_t k, DataType type) {
  Tensor y = tape.make("bitsandbytes::dequantize_4bit", {n, k}, type);
  TapeKernel work;
  work.name = "bitsandbytes::dequantize_4bit";
  work.operator_class = OperatorClass::elementwise;
  work.type = type;
  work.flops = static_cast<double>(n * k);
  work.kernels = 2;  // the magnitudes become fp32, then each element is looked up and multiplied
  tape.kernel(work, {&weight}, {&y});
  return y;
}

std::int64_t nf4_bytes(std::int64_t elements) { return (elements + 1) / 2 + (elements + 63) / 64; }

Tensor linear_nf4(Tape& tape, const Tensor& x_given, const Tensor& weight, std::int64_t n) {
  const Tensor x = contiguous(tape, x_given);
  const std::int64_t k = x.shape.back(), rows = x.elements() / k;
  Tape::Function f =
      tape.record({&x}, {weight}, [n, k, rows, shape = x.shape](Tape& t, GradientFunction& node, Tensors& g) {
        const Tensor gradient = contiguous(t, g[0]), packed = node.take_saved(t, 0);
        const Tensor wide = dequantized_nf4(t, packed, n, k, gradient.type);
        t.count_calls(1);
        return Tensors{mm(t, gradient, wide, rows, k, n, shape)};
      });
  Shape shape = x.shape;
  shape.back() = n;
  Tensor y;
  {
    const Tensor wide = dequantized_nf4(tape, weight, n, k, x.type);
    tape.count_calls(x.dimensions() > 2 ? 3 : 1);  // t, and the views before and after
    y = mm(tape, x, wide, rows, n, k, shape);
  }
  Tape::result(f, y);
  return y;
}

}  // namespace memwall
