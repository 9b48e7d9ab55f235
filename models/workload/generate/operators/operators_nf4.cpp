#include "models/workload/generate/operators/operators_nf4.h"

#include "models/workload/generate/operators/operators.h"
#include "models/workload/generate/operators/operators_product.h"

namespace memwall {

Tensor dequantized_nf4(Tape& tape, const Nf4Weight& weight, std::int64_t n, std::int64_t k, DataType type) {
  Tensor y = tape.make("bitsandbytes::dequantize_4bit", {n, k}, type);
  TapeKernel work;
  work.name = "bitsandbytes::dequantize_4bit";
  work.operator_class = OperatorClass::elementwise;
  work.type = type;
  work.flops = static_cast<double>(n * k);
  work.kernels = 2;  // the magnitudes become fp32, then each element is looked up and multiplied
  tape.kernel(work, {&weight.packed, &weight.scales}, {&y});
  return y;
}

std::int64_t nf4_bytes(std::int64_t elements) { return (elements + 1) / 2; }

// A byte for each block of 64, an fp32 scale for 256 of these, the offset of all, and two tables of what bits mean.
std::int64_t nf4_scale_bytes(std::int64_t elements) {
  const std::int64_t blocks = (elements + 63) / 64;
  return blocks + 4 * ((blocks + 255) / 256) + 4 * (1 + 16 + 256);
}

Tensor nf4_scales(Tape& tape, const std::string& module, std::int64_t elements) {
  return tape.permanent(module + ".quant_state", {nf4_scale_bytes(elements)}, DataType::int8, StorageKind::workspace);
}

Tensor linear_nf4(Tape& tape, const Tensor& x_given, const Nf4Weight& weight, std::int64_t n) {
  const Tensor x = contiguous(tape, x_given);
  const std::int64_t k = x.shape.back(), rows = x.elements() / k;
  Tape::Function f =
      tape.record({&x}, {weight.packed}, [n, k, rows, shape = x.shape, scales = weight.scales](Tape& t, GradientFunction& node, Tensors& g) {
        const Tensor gradient = contiguous(t, g[0]), packed = node.take_saved(t, 0);
        const Tensor wide = dequantized_nf4(t, {packed, scales}, n, k, gradient.type);
        t.count_calls(1);
        return Tensors{product(t, "aten::mm", {1, rows, k, n}, {&gradient, &wide}, shape, gradient.type)};
      });
  Shape shape = x.shape;
  shape.back() = n;
  Tensor y;
  {
    const Tensor wide = dequantized_nf4(tape, weight, n, k, x.type);
    tape.count_calls(x.dimensions() > 2 ? 3 : 1);  // t, and the views before and after
    y = product(tape, "aten::mm", {1, rows, n, k}, {&x, &wide}, shape, x.type);
  }
  Tape::result(f, y);
  return y;
}

}  // namespace memwall
