#include "policies/recipe/linear_layers.h"

#include <fmt/format.h>

#include <algorithm>

#include "policies/trace/described.h"
#include "policies/trace/operator_name.h"
#include "policies/trace/optimizer_step.h"

namespace memwall {
LinearLayers::LinearLayers(const Trace& trace) : t_(trace), flow_(trace) {
  for (const OptimizerStep& step : find_optimizer(trace, flow_).steps)
    trained_.insert(step.parameters.begin(), step.parameters.end());
  for (const Pass& pass : passes(trace)) find(pass);
}

std::string LinearLayers::obstacle() const {
  if (layers_.empty())
    return fmt::format("it has no linear layer in bf16 throughout but the output layer with widths of multiples of {}.",
                       kMultiple);
  for (const LinearLayer& layer : layers_) {
    const std::string op = described_op(t_, layer.product);
    if (layer.rows % kMultiple != 0)
      return fmt::format("{} has {} rows; expected a multiple of {} (tokens of all sequences).", op, layer.rows,
                         kMultiple);
    if (!trained_.contains(layer.weight))
      return op + " has a weight that nothing trains (LoRA), which is not implemented.";
    if (t_.ops[layer.product].graph_member || t_.ops[layer.product].dispatch == Dispatch::compiled)
      return op + " is compiled or in a CUDA graph; expected single calls of operators.";
    if (layer.node.ops.empty()) return "of " + op + " the backward is not told.";
  }
  return "";
}

std::string LinearLayers::name_of(OpId id) const { return plain_operator_name(operator_of(t_, t_.ops[id])); }

void LinearLayers::find(const Pass& pass) {
  std::vector<LinearLayer> found;
  for (OpId id = pass.begin; id < pass.backward; ++id)
    if (t_.ops[id].kind == OpKind::kernel && t_.ops[id].phase == Phase::forward && is_matrix_product(t_, t_.ops[id]))
      found.push_back(layer_of(id));
  if (found.empty()) return;
  found.pop_back();  // the output layer
  const std::vector<BackwardNode> nodes = backward_nodes(t_, flow_, pass);
  for (LinearLayer& layer : found) {
    if (layer.weight == kNoStorage) continue;
    if (layer.n % kMultiple != 0 || layer.k % kMultiple != 0) {
      ++left_;
      continue;
    }
    auto node = std::ranges::find(nodes, layer.product, &BackwardNode::forward);
    if (node != nodes.end()) {
      layer.node = *node;
      for (++node; node != nodes.end() && node->sum; ++node) layer.sums.push_back(*node);
    }
    layers_.push_back(std::move(layer));
  }
}

// Without a weight where it is none.
LinearLayer LinearLayers::layer_of(OpId id) const {
  const Op& op = t_.ops[id];
  const Shape& shape = t_.shapes[op.shape];
  LinearLayer layer{.product = id};
  if (op.data_type != DataType::bf16 || shape.size() != 4 || shape[0] != 1) return layer;
  layer.rows = shape[1], layer.n = shape[2], layer.k = shape[3];
  StorageId weight = kNoStorage;
  for (const Use& use : t_.uses_of(op)) {
    if (use.access != Access::read) continue;
    if (is_parameter(use.storage, {layer.n, layer.k}))
      weight = use.storage;
    else if (is_parameter(use.storage, {layer.n}) && name_of(id) == "addmm")
      layer.bias = use.storage;
    else
      layer.x = use.storage;
  }
  const bool whole = layer.x != kNoStorage && (name_of(id) == "mm" || layer.bias != kNoStorage);
  if (whole) layer.weight = weight;
  return layer;
}

bool LinearLayers::is_parameter(StorageId id, const Shape& shape) const {
  const Storage& s = t_.storages[id];
  return s.kind == StorageKind::parameter && s.preexisting && t_.shapes[s.shape] == shape;
}

}  // namespace memwall
