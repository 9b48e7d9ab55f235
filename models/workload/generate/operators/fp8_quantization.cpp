#include "models/workload/generate/operators/fp8_quantization.h"

#include "models/workload/flops.h"
#include "models/workload/generate/operators/kernel_work.h"
#include "models/workload/generate/operators/operators.h"

namespace memwall {
namespace {

Shape transposed_shape(const Tensor& x) { return {x.shape.back(), x.elements() / x.shape.back()}; }

// The largest magnitude of all elements (transformer_engine/common/recipe/current_scaling.cu), then the scale.
void find_scale(Tape& tape, const Tensor& x, Communicator* ranks) {
  const Tensor largest = tape.make("transformer_engine::amax", {1}, DataType::fp32);
  tape.kernel(whole_reduction("transformer_engine::amax", x.type, x.elements()), {&x}, {&largest});
  if (ranks && ranks->ranks() > 1) ranks->all_reduce(largest);
  elementwise(tape, "transformer_engine::compute_scale", {&largest}, {1}, DataType::fp32);
}

}  // namespace

TapeKernel product_work(std::string_view name, DataType type, std::int64_t m, std::int64_t n, std::int64_t k) {
  TapeKernel work;
  work.name = name;
  work.operator_class = OperatorClass::gemm;
  work.type = type;
  work.flops = gemm_flops(static_cast<double>(m), static_cast<double>(n), static_cast<double>(k), 1);
  work.shape = {1, m, n, k};
  return work;
}

Fp8Parts quantize(Tape& tape, Fp8Recipe recipe, const Tensor& x, Fp8Usage usage, Communicator* ranks,
                  const Fp8Parts& into) {
  if (recipe == Fp8Recipe::tensorwise) find_scale(tape, x, ranks);
  Fp8Parts parts;
  TapeKernel work;
  work.name = usage.columns ? "transformer_engine::cast_transpose" : "transformer_engine::cast_to_fp8";
  if (usage.rows) parts.rows = into.rows ? into.rows : tape.make(work.name, x.shape, DataType::fp8);
  if (usage.columns)
    parts.columns = into.columns ? into.columns : tape.make(work.name, transposed_shape(x), DataType::fp8);
  work.operator_class = OperatorClass::elementwise;
  work.type = x.type;
  work.flops = 2 * static_cast<double>(x.elements());
  work.shape = {x.elements()};
  tape.kernel(work, {&x}, {&parts.rows, &parts.columns});
  return parts;
}

Tensor transposed_copy(Tape& tape, const Tensor& x, const Tensor& into) {
  constexpr std::string_view kName = "transformer_engine::fp8_transpose";
  Tensor y = into ? into : tape.make(kName, transposed_shape(x), DataType::fp8);
  TapeKernel work;
  work.name = kName;
  work.operator_class = OperatorClass::memory;
  work.type = DataType::fp8;
  work.shape = {x.elements()};
  tape.kernel(work, {&x}, {&y});
  return y;
}

}  // namespace memwall
