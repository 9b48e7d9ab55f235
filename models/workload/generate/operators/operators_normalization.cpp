// Normalizations. Statistics are kept in fp32 whatever the data is.
#include "models/workload/generate/operators/operators.h"

#include "models/workload/generate/operators/kernel_work.h"

namespace memwall {
namespace {

Shape statistics_shape(const Tensor& x) {
  Shape shape = x.shape;
  shape.back() = 1;
  return shape;
}

Tensors layer_norm_backward(Tape& t, GradientFunction& node, const Tensor& given) {
  constexpr std::string_view kName = "aten::native_layer_norm_backward";
  const Tensor g = contiguous(t, given);
  const Tensor bias = node.take_saved(t, 0), x = node.take_saved(t, 1), weight = node.take_saved(t, 2);
  const Tensor mean = node.take_saved(t, 3), deviation = node.take_saved(t, 4);
  Tensors result(3);
  if (node.needs(0)) result[0] = t.make(kName, x.shape, x.type);
  if (node.needs(1)) result[1] = t.make(kName, weight.shape, weight.type);
  if (node.needs(2)) result[2] = t.make(kName, bias.shape, bias.type);
  t.kernel(normalization_work(kName, x, 14), {&g, &x, &mean, &deviation, &weight, &bias},
           {&result[0], &result[1], &result[2]});
  return result;
}

Tensors rms_norm_backward(Tape& t, GradientFunction& node, const Tensor& given) {
  constexpr std::string_view kName = "aten::_fused_rms_norm_backward";
  const Tensor g = contiguous(t, given);
  const Tensor x = node.take_saved(t, 0), weight = node.take_saved(t, 1), deviation = node.take_saved(t, 2);
  Tensors result(2);
  if (node.needs(0)) result[0] = t.make(kName, x.shape, x.type);
  if (node.needs(1)) result[1] = t.make(kName, weight.shape, weight.type);
  t.kernel(normalization_work(kName, x, 10), {&g, &x, &deviation, &weight}, {&result[0], &result[1]});
  return result;
}

// y * rsqrt(mean(y^2) + epsilon); the mean lives as long as `mean` where that is given.
Tensor normalized_rows(Tape& tape, const Tensor& y, Tensor* kept_mean) {
  Tensor squares = square(tape, y);
  Tensor mean = mean_of_rows(tape, squares);
  squares.reset();
  Tensor shifted = add_number(tape, mean);
  if (kept_mean) *kept_mean = mean;
  mean.reset();
  Tensor inverse = rsqrt(tape, shifted);
  shifted.reset();
  return mul(tape, y, inverse);
}

}  // namespace

Tensor layer_norm(Tape& tape, const Tensor& x_given, const Tensor& weight, const Tensor& bias) {
  constexpr std::string_view kName = "aten::native_layer_norm";
  const Tensor x = autocast_fp32(tape, x_given);
  auto f = tape.record({&x, &weight, &bias}, {bias, x, weight},
                       [](Tape& t, GradientFunction& node, Tensors& g) { return layer_norm_backward(t, node, g[0]); });
  Tensor y = tape.make(kName, x.shape, x.type);
  const Tensor mean = tape.make(kName, statistics_shape(x), DataType::fp32);
  const Tensor deviation = tape.make(kName, statistics_shape(x), DataType::fp32);
  tape.kernel(normalization_work(kName, x, 7), {&x, &weight, &bias}, {&y, &mean, &deviation});
  Tape::result(f, y);
  tape.save(f, mean);
  tape.save(f, deviation);
  return y;
}

Tensor rms_norm(Tape& tape, const Tensor& x_given, const Tensor& weight) {
  constexpr std::string_view kName = "aten::_fused_rms_norm";
  const Tensor x = autocast_fp32(tape, x_given);
  auto f = tape.record({&x, &weight}, {x, weight},
                       [](Tape& t, GradientFunction& node, Tensors& g) { return rms_norm_backward(t, node, g[0]); });
  Tensor y = tape.make(kName, x.shape, x.type);
  const Tensor deviation = tape.make(kName, statistics_shape(x), DataType::fp32);
  tape.kernel(normalization_work(kName, x, 4), {&x, &weight}, {&y, &deviation});
  Tape::result(f, y);
  tape.save(f, deviation);
  return y;
}

// y = x.float(); y = y * rsqrt(mean(y^2) + epsilon); weight * y.to(x.dtype)
Tensor rms_norm_in_parts(Tape& tape, const Tensor& x, const Tensor& weight) {
  Tensor y = cast(tape, x, DataType::fp32);
  y = normalized_rows(tape, y, nullptr);
  const Tensor low = cast(tape, y, x.type);
  return mul(tape, weight, low);
}

// transformers/models/olmo2/modeling_olmo2.py, Olmo2RMSNorm.
Tensor rms_norm_in_fp32(Tape& tape, const Tensor& x, const Tensor& weight) {
  Tensor mean;
  Tensor y = cast(tape, x, DataType::fp32);
  y = normalized_rows(tape, y, &mean);
  Tensor weighted = mul(tape, weight, y);
  Tensor low = cast(tape, weighted, x.type);
  weighted.reset();
  mean.reset();
  return low;
}

// transformers/models/gemma2/modeling_gemma2.py, Gemma2RMSNorm.
Tensor rms_norm_zero_centered(Tape& tape, const Tensor& x, const Tensor& weight) {
  Tensor y = normalized_rows(tape, cast(tape, x, DataType::fp32), nullptr);
  Tensor wide = cast(tape, weight, DataType::fp32);
  Tensor shifted = add_number(tape, wide);
  wide.reset();
  y = mul(tape, y, shifted);
  shifted.reset();
  return cast(tape, y, x.type);
}

}  // namespace memwall
