// The second part of a layer: one feed-forward network, or a mixture of them.
#include "models/workload/generate/operators/operators.h"
#include "models/workload/generate/operators/operators_liger.h"
#include "models/workload/generate/operators/operators_routing.h"
#include "models/workload/generate/transformer.h"

namespace memwall {

Tensor Transformer::feed_forward(const FeedForward& mlp, const Tensor& x) {
  if (is_gated(model_) && joins_columns())
    return project(mlp.down, joint_gate(tape_, project(mlp.up, x),
                                        model_.activation == Activation::geglu ? JointGate::gelu : JointGate::silu));
  if (is_gated(model_) && multiplies_together()) {
    const Tensors parts = products_together(x, {&mlp.gate, &mlp.up});
    if (recipe_.liger_kernels) return project(mlp.down, silu_mul_liger(tape_, parts[0], parts[1]));
    return project(mlp.down, mul(tape_, activated(parts[0]), parts[1]));
  }
  if (is_gated(model_)) {
    const Tensor in = input_of_columns(x);
    Tensor gate = project(mlp.gate, in);
    if (recipe_.liger_kernels) {
      const Tensor up = project(mlp.up, in);
      return project(mlp.down, silu_mul_liger(tape_, gate, up));
    }
    gate = activated(gate);
    const Tensor up = project(mlp.up, in);
    return project(mlp.down, mul(tape_, gate, up));
  }
  Tensor y = project(mlp.up, x);
  y = activated(y);
  return project(mlp.down, y);
}

Tensor Transformer::mlp(const Layer& layer, const Tensor& x) {
  if (model_.experts != 0) return mixture(layer, x);
  const FeedForward& only = layer.mlps.front();
  if (only.name.empty()) return drop("dropout2", feed_forward(only, x));
  const ModuleScope scope(tape_, only.name);
  return feed_forward(only, x);
}

// Tokens sorted by expert; each expert's share through its network; the results weighted and added up per token.
Tensor Transformer::mixture(const Layer& layer, const Tensor& x) {
  const ModuleScope scope(tape_, "mlp");
  const std::int64_t tokens = recipe_.batch * x.shape[1], chosen = model_.experts_per_token;
  const Tensor flat = reshape(tape_, x, {tokens, model_.width});
  Tensor scores = project(layer.router, flat);
  scores = cast(tape_, scores, DataType::fp32);
  scores = softmax(tape_, scores);
  LargestOfRows best = topk(tape_, scores, chosen);
  scores.reset();
  Tensor sum = sum_of_rows(tape_, best.values);
  Tensor weights = div(tape_, best.values, sum);
  sum.reset();
  weights = cast(tape_, weights, x.type);
  best.values.reset();
  const Tensor order = argsort(tape_, reshape(tape_, best.indices, {tokens * chosen}));
  const Tensor source = floor_divide(tape_, order);
  Tensor out = experts_of(layer, index_rows(tape_, flat, source));
  const Tensor column = reshape(tape_, weights, {tokens * chosen, 1});
  out = mul(tape_, out, index_rows(tape_, column, order));
  Tensor result = add_rows(tape_, flat, source, out);
  return reshape(tape_, result, x.shape);
}

Tensor Transformer::experts_of(const Layer& layer, const Tensor& rows) {
  const Tensors parts = chunk(tape_, rows, 0, static_cast<int>(model_.experts));
  Tensors results;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const ModuleScope scope(tape_, layer.mlps[i].name);
    results.push_back(feed_forward(layer.mlps[i], parts[i]));
  }
  Tensor all = cat(tape_, results, 0);
  while (!results.empty()) results.pop_back();  // as a list lets go: from its end
  return all;
}

}  // namespace memwall
