#include "models/workload/generate/operators/operators_image.h"

#include <fmt/format.h>

#include "models/workload/generate/operators/operators.h"
#include "sim/error.h"

namespace memwall {
namespace {

// Rows that a window gives: (rows + 2 padding - kernel) / stride + 1, rounded down.
std::int64_t windows(std::string_view name, std::int64_t rows, std::int64_t kernel, std::int64_t stride,
                     std::int64_t padding) {
  if (rows + 2 * padding < kernel)
    throw UsageError(fmt::format("{}: a window of {} does not fit into {} rows; expected a larger model.image.", name,
                                 kernel, rows + 2 * padding));
  return (rows + 2 * padding - kernel) / stride + 1;
}

// Forward, and each gradient of backward: a multiply-add per output position, channel out, channel in and kernel tap.
TapeKernel convolution_work(std::string_view name, const Tensor& x, const Tensor& weight, std::int64_t positions) {
  TapeKernel work;
  work.name = name;
  work.operator_class = OperatorClass::convolution;
  work.type = weight.type;
  const std::int64_t taps = weight.shape[2] * weight.shape[3];
  work.shape = {x.shape[0], weight.shape[1], weight.shape[0], positions, taps, 1};
  work.flops =
      2.0 * static_cast<double>(x.shape[0]) * static_cast<double>(positions) * static_cast<double>(weight.elements());
  return work;
}

Tensors convolution_backward(Tape& t, GradientFunction& node, const Tensor& g) {
  constexpr std::string_view kName = "aten::convolution_backward";
  const Tensor x = node.take_saved(t, 0), weight = node.take_saved(t, 1);
  Tensors result(node.edges.size());
  TapeKernel work = convolution_work(kName, x, weight, g.shape[2] * g.shape[3]);
  const double once = work.flops;
  work.kernels = static_cast<int>(node.needs(0)) + static_cast<int>(node.needs(1));
  work.flops = once * work.kernels;
  if (node.needs(0)) result[0] = t.make(kName, x.shape, x.type);
  if (node.needs(1)) result[1] = t.make(kName, weight.shape, weight.type);
  Tensor none;
  Tensor& bias = result.size() > 2 ? result[2] : none;
  if (result.size() > 2 && node.needs(2)) {  // a sum over images and positions
    bias = t.make(kName, {weight.shape[0]}, weight.type);
    ++work.kernels;
  }
  t.kernel(work, {&g, &x, &weight}, {&result[0], &result[1], &bias});
  return result;
}

TapeKernel batch_norm_work(std::string_view name, const Tensor& x, double per_element) {
  TapeKernel work;
  work.name = name;
  work.operator_class = OperatorClass::normalization;
  work.type = x.type;
  work.flops = per_element * static_cast<double>(x.elements());
  // Each channel is one row, of all images' positions.
  work.shape = {x.shape[1], x.elements() / x.shape[1]};
  return work;
}

Tensors batch_norm_backward(Tape& t, GradientFunction& node, const Tensor& g) {
  constexpr std::string_view kName = "aten::native_batch_norm_backward";
  const Tensor x = node.take_saved(t, 0), mean = node.take_saved(t, 1), variance = node.take_saved(t, 2);
  const Tensor weight = node.take_saved(t, 3);
  const Tensor batch_mean = node.take_saved(t, 4), batch_deviation = node.take_saved(t, 5);
  Tensors result(3);
  if (node.needs(0)) result[0] = t.make(kName, x.shape, x.type);
  if (node.needs(1)) result[1] = t.make(kName, weight.shape, weight.type);
  if (node.needs(2)) result[2] = t.make(kName, weight.shape, weight.type);
  TapeKernel work = batch_norm_work(kName, x, 14);
  t.kernel(work, {&g, &x, &weight, &mean, &variance, &batch_mean, &batch_deviation},
           {&result[0], &result[1], &result[2]});
  return result;
}

TapeKernel in_place_work(std::string_view name, const Tensor& x) {
  TapeKernel work;
  work.name = name;
  work.operator_class = OperatorClass::elementwise;
  work.type = x.type;
  work.flops = static_cast<double>(x.elements());
  work.shape = {x.elements()};
  return work;
}

// Poolings count one operation per element of their larger side; each element of the smaller one is a row.
TapeKernel pooling_work(std::string_view name, const Tensor& larger, std::int64_t smaller) {
  TapeKernel work;
  work.name = name;
  work.operator_class = OperatorClass::reduction;
  work.type = larger.type;
  work.flops = static_cast<double>(larger.elements());
  work.shape = {smaller, larger.elements() / smaller};
  return work;
}

// The batch counter: a kernel of one element.
void count_batch(Tape& tape, const Tensor& seen) {
  TapeKernel work = in_place_work("aten::add_", seen);
  tape.kernel(work, {&seen}, {&seen});
}

}  // namespace

Tensor convolution(Tape& tape, const Tensor& x_given, const Tensor& weight_given, const Tensor& bias_given,
                   std::int64_t stride, std::int64_t padding) {
  constexpr std::string_view kName = "aten::convolution";
  const Tensor bias = autocast_low(tape, bias_given), weight = autocast_low(tape, weight_given);
  const Tensor x = contiguous(tape, autocast_low(tape, x_given));
  const auto backward = [](Tape& t, GradientFunction& node, Tensors& g) { return convolution_backward(t, node, g[0]); };
  Tape::Function f = bias ? tape.record({&x, &weight, &bias}, {x, weight}, backward)
                          : tape.record({&x, &weight}, {x, weight}, backward);
  const std::int64_t rows = windows(kName, x.shape[2], weight.shape[2], stride, padding);
  const std::int64_t columns = windows(kName, x.shape[3], weight.shape[3], stride, padding);
  Tensor y = tape.make(kName, {x.shape[0], weight.shape[0], rows, columns}, weight.type);
  TapeKernel work = convolution_work(kName, x, weight, rows * columns);
  work.kernels = bias ? 2 : 1;
  tape.kernel(work, {&x, &weight, &bias}, {&y});
  Tape::result(f, y);
  return y;
}

Tensor batch_norm(Tape& tape, const Tensor& x_given, const BatchNormalization& p) {
  constexpr std::string_view kName = "aten::native_batch_norm";
  count_batch(tape, p.seen);
  const Tensor x = contiguous(tape, x_given);
  auto f = tape.record(
      {&x, &p.weight, &p.bias}, {x, p.mean, p.variance, p.weight},
      [](Tape& t, GradientFunction& node, Tensors& g) { return batch_norm_backward(t, node, contiguous(t, g[0])); });
  Tensor y = tape.make(kName, x.shape, x.type);
  const Tensor mean = tape.make(kName, p.weight.shape, DataType::fp32);
  const Tensor deviation = tape.make(kName, p.weight.shape, DataType::fp32);
  TapeKernel work = batch_norm_work(kName, x, 7);
  work.kernels = 3;     // statistics, the running ones, every element (ATen/native/cuda/Normalization.cu)
  tape.count_calls(1);  // the buffers that cuDNN would take
  tape.kernel(work, {&x, &p.weight, &p.bias, &p.mean, &p.variance}, {&p.mean, &p.variance, &y, &mean, &deviation});
  Tape::result(f, y);
  tape.save(f, mean);
  tape.save(f, deviation);
  return y;
}

Tensor relu_in_place(Tape& tape, const Tensor& x) {
  auto f = tape.record({&x}, {}, [](Tape& t, GradientFunction& node, Tensors& g) {
    const Tensor y = node.take_saved(t, 0);
    return Tensors{elementwise(t, "aten::threshold_backward", {&g[0], &y}, y.shape, y.type)};
  });
  tape.kernel(in_place_work("aten::relu_", x), {&x}, {&x});
  Tensor y = x.detached();
  Tape::result(f, y);
  tape.save(f, y);
  return y;
}

Tensor add_to(Tape& tape, const Tensor& x, const Tensor& other) {
  auto f = tape.record({&x, &other}, {}, [](Tape&, GradientFunction& node, Tensors& g) {
    return Tensors{node.needs(0) ? g[0] : Tensor(), node.needs(1) ? g[0] : Tensor()};
  });
  add_in_place(tape, x, other);
  Tensor y = x.detached();
  Tape::result(f, y);
  return y;
}

Tensor max_pool(Tape& tape, const Tensor& x, std::int64_t kernel, std::int64_t stride, std::int64_t padding) {
  constexpr std::string_view kName = "aten::max_pool2d_with_indices";
  auto f = tape.record({&x}, {x}, [](Tape& t, GradientFunction& node, Tensors& g) {
    constexpr std::string_view kBackward = "aten::max_pool2d_with_indices_backward";
    const Tensor input = node.take_saved(t, 0), indices = node.take_saved(t, 1);
    Tensor gradient = t.make(kBackward, input.shape, input.type);
    t.kernel(pooling_work(kBackward, input, g[0].elements()), {&g[0], &input, &indices}, {&gradient});
    return Tensors{gradient};
  });
  const Shape shape{x.shape[0], x.shape[1], windows(kName, x.shape[2], kernel, stride, padding),
                    windows(kName, x.shape[3], kernel, stride, padding)};
  Tensor y = tape.make(kName, shape, x.type);
  const Tensor indices = tape.make(kName, shape, DataType::int64);
  tape.kernel(pooling_work(kName, x, y.elements()), {&x}, {&y, &indices});
  Tape::result(f, y);
  tape.save(f, indices);
  return y;
}

// The gradient is spread over the positions and divided.
Tensor mean_of_positions(Tape& tape, const Tensor& x) {
  auto f = tape.record({&x}, {}, [shape = x.shape](Tape& t, GradientFunction&, Tensors& g) {
    t.count_calls(3);  // unsqueeze twice, expand
    return Tensors{elementwise(t, "aten::div", {&g[0]}, shape, g[0].type)};
  });
  Tensor y = tape.make("aten::mean", {x.shape[0], x.shape[1]}, x.type);
  tape.kernel(pooling_work("aten::mean", x, y.elements()), {&x}, {&y});
  Tape::result(f, y);
  return y;
}

Tensor adaptive_average_pool(Tape& tape, const Tensor& x, std::int64_t side) {
  constexpr std::string_view kName = "aten::_adaptive_avg_pool2d";
  auto f = tape.record({&x}, {x}, [](Tape& t, GradientFunction& node, Tensors& g) {
    constexpr std::string_view kBackward = "aten::_adaptive_avg_pool2d_backward";
    const Tensor input = node.take_saved(t, 0);
    Tensor gradient = t.make(kBackward, input.shape, input.type);
    t.kernel(pooling_work(kBackward, input, g[0].elements()), {&g[0], &input}, {&gradient});
    return Tensors{gradient};
  });
  Tensor y = tape.make(kName, {x.shape[0], x.shape[1], side, side}, x.type);
  tape.kernel(pooling_work(kName, x, y.elements()), {&x}, {&y});
  Tape::result(f, y);
  return y;
}

}  // namespace memwall
