#include "models/workload/generate/operators/async_columns.h"

#include <utility>

#include "models/workload/generate/operators/kernel_work.h"
#include "models/workload/generate/operators/operators_product.h"
#include "models/workload/generate/operators/overlapped_product.h"

namespace memwall {
namespace {

// The last column first, as the engine runs their nodes.
Tensors async_columns_backward(Tape& t, TensorParallel& parallel, GradientFunction& node, const Tensors& given) {
  const std::size_t columns = given.size();
  Tensors gradients(columns + 1);
  const Tensor x = node.take_saved(t, columns);
  const auto [rows, k] = rows_of(x);
  for (std::size_t i = columns; i-- > 0;) {
    const Tensor g = contiguous(t, given[i]), weight = node.take_saved(t, i);
    const std::int64_t n = weight.shape[0];
    t.count_calls(3);
    if (node.needs(0)) {
      Tensor part = product(t, "aten::mm", {1, rows, k, n}, {&g, &weight}, x.shape, g.type);
      add_column(t, gradients[0], std::move(part));
    }
    if (node.needs(i + 1)) gradients[i + 1] = product(t, "aten::mm", {1, n, k, rows}, {&g, &x}, {n, k}, g.type);
  }
  if (node.needs(0)) gradients[0] = parallel.group.reduce_scatter(gradients[0]);
  return gradients;
}

}  // namespace

Tape::Function columns_node(Tape& tape, const Tensor& x, const std::vector<const Tensor*>& weights,
                            GradientFunction::Apply apply) {
  std::vector<const Tensor*> inputs{&x};
  Tensors saved;
  for (const Tensor* weight : weights) {
    inputs.push_back(weight);
    saved.push_back(*weight);
  }
  return tape.record(inputs, std::move(saved), std::move(apply));
}

void add_column(Tape& tape, Tensor& sum, Tensor part) {
  if (sum)
    kernel_into(tape, "aten::add_", OperatorClass::elementwise, {&sum, &part}, sum);
  else
    sum = std::move(part);
}

Tensors columns_beside_gather(Tape& tape, TensorParallel& parallel, const Tensor& x_given,
                              const std::vector<const Tensor*>& weights) {
  const Tensor x = contiguous(tape, x_given);
  Tape::Function f = columns_node(tape, x, weights, [&parallel](Tape& t, GradientFunction& node, Tensors& g) {
    return async_columns_backward(t, parallel, node, g);
  });
  const Shape shape = parallel.group.gathered(x.shape);
  const Tensor whole = tape.make("symm_mem::fused_all_gather_matmul", shape, x.type);
  Tensors results;
  for (const Tensor* weight : weights) {
    Shape of_result = shape;
    of_result.back() = weight->shape[0];
    results.push_back(tape.make("aten::mm", of_result, x.type));
  }
  const Tensor no_bias;
  std::vector<GatheredProduct> products;
  for (std::size_t i = 0; i < weights.size(); ++i)
    products.push_back(
        {{"aten::mm", x.type, weights[i]->shape[0], weights[i]->shape[1], *weights[i], no_bias}, results[i]});
  tape.count_calls(2);
  gather_beside_products(tape, parallel, x, whole, products);
  for (Tensor& result : results) Tape::result(f, result);
  tape.save(f, whole);
  return results;
}

}  // namespace memwall
