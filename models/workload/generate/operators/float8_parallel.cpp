#include "models/workload/generate/operators/float8_parallel.h"

#include <utility>

#include "models/workload/generate/operators/async_columns.h"
#include "models/workload/generate/operators/kernel_work.h"
#include "models/workload/generate/operators/operators_fp8.h"
#include "models/workload/generate/operators/overlapped_product.h"

namespace memwall {
namespace {

constexpr std::string_view kProduct = "aten::_scaled_mm";

Tensor by_columns(Tape& t, const Tensor& values) { return copy_of(t, values, "aten::contiguous"); }

Tensor fp8_of_all_tokens(Tape& t, const TensorParallel& p, const Tensor& own) {
  return t.make(p.overlaps() ? "symm_mem::fused_all_gather_scaled_matmul" : "c10d::_allgather_base_",
                p.group.gathered(own.shape), DataType::fp8);
}

void gather(TensorParallel& p, const Tensor& own, const Tensor& whole) {
  p.group.start_all_gather(own, whole);
  p.group.wait();
}

Tensor weight_gradient(Tape& t, const Tensor& g, const Tensor& g_scale, const Tensor& x, const Tensor& x_scale,
                       const Shape& shape) {
  const Tensor turned = by_columns(t, g), columns = by_columns(t, x);
  return scaled_mm(t, turned, g_scale, columns, x_scale, {shape[0], shape[1], rows_of(g).rows}, shape);
}

// The last column first, as the engine runs their nodes.
Tensors columns_backward(Tape& t, TensorParallel& p, GradientFunction& node, const Tensors& given) {
  const NoGradientScope no_gradient(t);
  const std::size_t columns = given.size();
  Tensors gradients(columns + 1);
  const Tensor x = node.take_saved(t, columns), x_scale = node.take_saved(t, columns + 1);
  const auto [rows, k] = rows_of(x);
  for (std::size_t i = columns; i-- > 0;) {
    const Tensor weight = node.take_saved(t, i);
    const ScaledTensor g = to_fp8(t, contiguous(t, given[i]), &p.group), factor = to_fp8(t, weight, &p.group);
    if (node.needs(0)) {
      const Tensor turned = by_columns(t, factor.values);
      Tensor part = scaled_mm(t, g.values, g.scale, turned, factor.scale, {rows, k, weight.shape[0]}, x.shape);
      add_column(t, gradients[0], std::move(part));
    }
    if (node.needs(i + 1)) gradients[i + 1] = weight_gradient(t, g.values, g.scale, x, x_scale, weight.shape);
  }
  if (node.needs(0)) gradients[0] = p.group.reduce_scatter(gradients[0]);
  return gradients;
}

Tensors row_backward(Tape& t, TensorParallel& p, GradientFunction& node, const Tensor& given) {
  const NoGradientScope no_gradient(t);
  Tensors gradients(2);
  const Tensor weight = node.take_saved(t, 0);
  const std::int64_t n = weight.shape[0], k = weight.shape[1];
  ScaledTensor own = to_fp8(t, contiguous(t, given), &p.group);
  const Tensor whole = fp8_of_all_tokens(t, p, own.values);
  Shape of_inputs = whole.shape;
  of_inputs.back() = k;
  const ScaledTensor factor = to_fp8(t, weight, &p.group);
  const Tensor turned = by_columns(t, factor.values);
  if (p.overlaps() && node.needs(0)) {
    gradients[0] = t.make(kProduct, of_inputs, DataType::bf16);
    gather_beside_product(t, p, own.values, whole, {kProduct, DataType::fp8, k, n, turned, {}}, gradients[0]);
  } else {
    gather(p, own.values, whole);
    if (node.needs(0))
      gradients[0] = scaled_mm(t, whole, own.scale, turned, factor.scale, {rows_of(whole).rows, k, n}, of_inputs);
  }
  own.values.reset();
  const Tensor x = node.take_saved(t, 1), x_scale = node.take_saved(t, 2);
  if (node.needs(1)) gradients[1] = weight_gradient(t, whole, own.scale, x, x_scale, weight.shape);
  return gradients;
}

}  // namespace

Tensors float8_columns(Tape& tape, TensorParallel& parallel, const Tensor& x_given,
                       const std::vector<const Tensor*>& weights) {
  const Tensor x = contiguous(tape, x_given);
  Tape::Function f = columns_node(tape, x, weights, [&parallel](Tape& t, GradientFunction& node, Tensors& g) {
    return columns_backward(t, parallel, node, g);
  });
  const Shape shape = parallel.group.gathered(x.shape);
  const auto [own_rows, k] = rows_of(x);
  const std::int64_t rows = own_rows * parallel.group.ranks();
  const Tensor whole = fp8_of_all_tokens(tape, parallel, x), no_bias;
  Tensors results;
  ScaledTensor own;
  {
    const NoGradientScope no_gradient(tape);
    own = to_fp8(tape, x, &parallel.group);
    std::vector<ScaledTensor> factors;
    std::vector<GatheredProduct> products;
    for (const Tensor* weight : weights) {
      require_fp8_multiples(rows, weight->shape[0], k);
      factors.push_back(to_fp8(tape, *weight, &parallel.group));
    }
    if (!parallel.overlaps()) gather(parallel, own.values, whole);
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const std::int64_t n = weights[i]->shape[0];
      Shape of_result = shape;
      of_result.back() = n;
      results.push_back(parallel.overlaps() ? tape.make(kProduct, of_result, DataType::bf16)
                                            : scaled_mm(tape, whole, own.scale, factors[i].values, factors[i].scale,
                                                        {rows, n, k}, of_result));
    }
    for (std::size_t i = 0; i < weights.size(); ++i)
      products.push_back({{kProduct, DataType::fp8, weights[i]->shape[0], k, factors[i].values, no_bias}, results[i]});
    if (parallel.overlaps()) gather_beside_products(tape, parallel, own.values, whole, products);
  }
  for (Tensor& result : results) Tape::result(f, result);
  tape.save(f, whole);
  tape.save(f, own.scale);
  return results;
}

Tensor float8_row(Tape& tape, TensorParallel& parallel, const Tensor& x_given, const Tensor& weight) {
  const Tensor x = contiguous(tape, x_given);
  const auto [rows, k] = rows_of(x);
  const std::int64_t n = weight.shape[0];
  require_fp8_multiples(rows, n, k);
  Tape::Function f = tape.record({&x, &weight}, {weight}, [&parallel](Tape& t, GradientFunction& node, Tensors& g) {
    return row_backward(t, parallel, node, g[0]);
  });
  Tensor y;
  ScaledTensor in;
  {
    const NoGradientScope no_gradient(tape);
    in = to_fp8(tape, x, &parallel.group);
    const ScaledTensor factor = to_fp8(tape, weight, &parallel.group);
    Shape of_sums = x.shape;
    of_sums.back() = n;
    if (parallel.overlaps()) {
      const Tensor sums = tape.make(kProduct, of_sums, DataType::bf16);
      y = scatter_beside_product(tape, parallel, in.values, {kProduct, DataType::fp8, n, k, factor.values, {}}, sums);
    } else {
      y = parallel.group.reduce_scatter(
          scaled_mm(tape, in.values, in.scale, factor.values, factor.scale, {rows, n, k}, of_sums));
    }
  }
  Tape::result(f, y);
  tape.save(f, in.values);
  tape.save(f, in.scale);
  return y;
}

}  // namespace memwall
