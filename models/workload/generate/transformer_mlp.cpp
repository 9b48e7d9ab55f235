// The second part of a layer: one feed-forward network, or a mixture of them.
#include "models/workload/generate/operators.h"
#include "models/workload/generate/transformer.h"

namespace memwall {

Tensor Transformer::feed_forward(const FeedForward& mlp, const Tensor& x) {
  if (model_.activation == Activation::swiglu) {
    Tensor gate = project(mlp.gate, x);
    gate = silu(tape_, gate);
    const Tensor up = project(mlp.up, x);
    return project(mlp.down, mul(tape_, gate, up));
  }
  Tensor y = project(mlp.up, x);
  y = model_.activation == Activation::relu ? relu(tape_, y) : gelu(tape_, y);
  return project(mlp.down, y);
}

Tensor Transformer::mlp(const Layer& layer, const Tensor& x) {
  if (model_.experts != 0) return mixture(layer, x);
  const FeedForward& only = layer.mlps.front();
  if (only.name.empty()) return drop("dropout2", feed_forward(only, x));
  const ModuleScope scope(tape_, only.name);
  return feed_forward(only, x);
}

Tensor Transformer::mixture(const Layer& layer, const Tensor& x) {
  (void)layer;
  return x;
}

}  // namespace memwall
