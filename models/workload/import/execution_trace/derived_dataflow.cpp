#include "models/workload/import/execution_trace/derived_dataflow.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>

#include "models/workload/import/execution_trace/autograd_nodes.h"
#include "models/workload/import/execution_trace/operator_cost.h"
#include "models/workload/import/execution_trace/operator_schema.h"
#include "models/workload/import/execution_trace/operator_shape.h"
#include "models/workload/import/execution_trace/storage_kinds.h"
#include "models/workload/import/timed/kernel_properties.h"
#include "models/workload/operator_class.h"

namespace memwall {
namespace {

OperatorMatch identity(const TimedCapture& capture, const ExecutionTrace& execution) {
  OperatorMatch match;
  match.node_of_operator.resize(capture.operators.size());
  std::iota(match.node_of_operator.begin(), match.node_of_operator.end(), 0U);
  match.operator_of_node = match.node_of_operator;
  match.nodes = match.matched = execution.nodes.size();
  return match;
}

// cuDNN's convolutions of single precision are computed in TF32 unless PyTorch was told otherwise, which
// cudnn_convolution lists among its arguments (torch.backends.cudnn.allow_tf32, on by default).
std::optional<bool> stated_tf32(const ExecutionTrace& execution) {
  for (const ExecutionNode& node : execution.nodes) {
    if (execution.name(node) != "aten::cudnn_convolution") continue;
    const std::size_t position = parse_schema(execution.strings[node.schema]).position("allow_tf32");
    if (const std::string& value = execution.value(node, position); value == "true" || value == "false")
      return value == "true";
  }
  return std::nullopt;
}

// FLOPs, bytes, type and shape; several kernels of one operator share by duration, or equally without times.
void set_costs(Trace& trace, const ExecutionTrace& execution, const std::vector<std::uint32_t>& node_of_op,
               DerivedDataflow& derived) {
  std::vector<std::uint32_t> kernels(execution.nodes.size(), 0);
  std::vector<Duration> durations(execution.nodes.size());
  std::vector<bool> in_tf32(execution.nodes.size());
  for (OpId id = 0; id < trace.ops.size(); ++id) {
    if (trace.ops[id].kind != OpKind::kernel || node_of_op[id] == kNoIndex) continue;
    ++kernels[node_of_op[id]];
    durations[node_of_op[id]] += trace.ops[id].duration;
    if (is_in_tf32(trace.strings[trace.ops[id].name])) in_tf32[node_of_op[id]] = true;
  }
  const std::optional<bool> stated = stated_tf32(execution);
  derived.tf32_stated = stated.has_value();
  derived.tf32 = stated.value_or(true);
  for (OpId id = 0; id < trace.ops.size(); ++id) {
    Op& op = trace.ops[id];
    if (op.kind != OpKind::kernel || node_of_op[id] == kNoIndex) continue;
    const ExecutionNode& node = execution.nodes[node_of_op[id]];
    const OperatorCost cost = cost_of(execution, node);
    const Duration all = durations[node_of_op[id]];
    const double share = all.count() > 0 ? to_seconds(op.duration) / to_seconds(all) : 1.0 / kernels[node_of_op[id]];
    if (op.flops == 0) op.flops = cost.flops * share;
    if (op.bytes == 0) op.bytes = static_cast<Bytes>(static_cast<double>(cost.bytes) * share);
    // What kernels are named after they ran in, whatever their tensors and the file's settings say.
    op.data_type = in_tf32[node_of_op[id]] && cost.data_type == DataType::fp32 ? DataType::tf32 : cost.data_type;
    if (op.operator_class == OperatorClass::convolution && cost.data_type == DataType::fp32) {
      ++derived.convolutions;
      if (derived.tf32) op.data_type = DataType::tf32;
    }
    if (kernels[node_of_op[id]] == 1) {
      op.shape = trace.shapes.intern(shape_of(execution, node, cost));
      op.kernels = kernels_of(execution, node);
    }
    derived.flops += op.flops;
  }
}

class LifetimeExtender {
 public:
  LifetimeExtender(const ImportedTrace& imported, const TimedCapture& capture, const ExecutionTrace& execution,
                   const OperatorMatch& match, const StorageJoin& storages)
      : imported_(imported), capture_(capture), execution_(execution), match_(match), storages_(storages) {}

  std::vector<StorageId> gradients;  // that AccumulateGrad took

  // By storage, as add_derived_lifetimes takes it.
  std::vector<OpId> run(const std::vector<std::pair<OpId, OpId>>& waited) {
    until_.assign(imported_.trace.storages.size(), 0);
    for (const auto& [collective, wait] : waited)
      for (const Use& use : imported_.trace.uses_of(imported_.trace.ops[collective])) keep(use.storage, wait);
    keep_gradients();
    return std::move(until_);
  }

 private:
  void keep(StorageId storage, OpId until) { until_[storage] = std::max(until_[storage], until); }

  void keep_gradients() {
    const std::vector<std::pair<Time, OpId>> ends = first_ops_after_zero_grad();
    for (std::uint32_t n = 0; n < execution_.nodes.size(); ++n) {
      const ExecutionNode& node = execution_.nodes[n];
      if (execution_.name(node) != "torch::autograd::AccumulateGrad") continue;  // not the engine's entry around it
      const std::uint32_t captured = match_.operator_of_node[n];
      if (captured == kNoIndex) continue;
      const auto next =
          std::upper_bound(ends.begin(), ends.end(), std::pair(capture_.operators[captured].start, kNoOp));
      for (std::uint32_t i = node.first_input; i < node.first_input + node.input_count; ++i)
        if (const StorageId s = storages_.storage_of_tensor[i]; s != kNoStorage && is_gradient(s)) {
          keep(s, next == ends.end() ? kNoOp : next->second);
          gradients.push_back(s);
        }
    }
  }

  // AccumulateGrad adds to a gradient that is there; only the first tensor is kept.
  bool is_gradient(StorageId s) const {
    const Storage& storage = imported_.trace.storages[s];
    return storage.kind == StorageKind::gradient || storage.kind == StorageKind::activation;
  }

  std::vector<std::pair<Time, OpId>> first_ops_after_zero_grad() const {
    std::vector<std::pair<Time, OpId>> result;
    std::vector<std::pair<Time, OpId>> issued;  // of every op with an operator, by its operator's start
    for (OpId id = 0; id < imported_.operator_of_op.size(); ++id)
      if (const std::uint32_t k = imported_.operator_of_op[id]; k != kNoIndex)
        issued.emplace_back(capture_.operators[k].start, id);
    std::sort(issued.begin(), issued.end());
    for (const CapturedOperator& op : capture_.operators) {
      if (!capture_.text(op.name).starts_with("Optimizer.zero_grad")) continue;
      const auto after = std::lower_bound(issued.begin(), issued.end(), std::pair(op.start, OpId{0}));
      if (after != issued.end()) result.emplace_back(op.start, after->second);
    }
    return result;
  }

  const ImportedTrace& imported_;
  const TimedCapture& capture_;
  const ExecutionTrace& execution_;
  const OperatorMatch& match_;
  const StorageJoin& storages_;
  std::vector<OpId> until_;
};

// The tensor that a storage was made for, where it is all of it.
void set_storage_shapes(Trace& trace, const ExecutionTrace& execution, const StorageJoin& storages) {
  for (StorageId s = 0; s < trace.storages.size(); ++s) {
    const std::uint32_t tensor = storages.tensor_of_storage[s];
    if (tensor == kNoIndex) continue;
    const TensorUse& t = execution.tensors[tensor];
    const std::span<const std::int64_t> extents = execution.shape(t);
    if (rounded_size(t.bytes()) != trace.storages[s].bytes) continue;
    Shape shape(extents.begin(), extents.end());
    if (shape.empty()) shape = {1};
    if (known_elements(shape) == t.elements) trace.storages[s].shape = trace.shapes.intern(shape);
  }
}

// Without an optimizer in the file nothing but AccumulateGrad says of a gradient what it is.
void name_gradients(Trace& trace, const std::vector<StorageId>& gradients) {
  for (const StorageId s : gradients)
    if (!trace.storages[s].preexisting && trace.storages[s].kind == StorageKind::activation)
      trace.storages[s].kind = StorageKind::gradient;
}

// Values of ops at their new places; ops between have none.
template <typename Value>
void spread(const std::vector<OpId>& places, Value none, std::vector<Value>& values) {
  if (values.size() + 1 != places.size()) return;
  std::vector<Value> all(places.back(), none);
  for (std::size_t id = 0; id < values.size(); ++id) all[places[id]] = values[id];
  values = std::move(all);
}

}  // namespace

DerivedLifetimes derive_lifetimes(ImportedTrace& imported, const TimedCapture& capture, const ExecutionTrace& execution,
                                  const OperatorMatch& match, const StorageJoin& storages,
                                  const std::vector<std::pair<OpId, OpId>>& waited) {
  LifetimeExtender keeper(imported, capture, execution, match, storages);
  const std::vector<OpId> until = keeper.run(waited);
  name_gradients(imported.trace, keeper.gradients);
  DerivedLifetimes lives = add_derived_lifetimes(imported.trace, until);
  for (auto* by_op : {&imported.operator_of_op, &imported.memory_of_op, &imported.device_of_op})
    spread(lives.places, kNoIndex, *by_op);
  for (auto* by_op : {&imported.captured.start, &imported.captured.end}) spread(lives.places, kNever, *by_op);
  return lives;
}

DerivedDataflow add_dataflow(ImportedTrace& imported, const TimedCapture& capture, const ExecutionTrace& execution,
                             const DataflowSettings& settings) {
  DerivedDataflow derived;
  Trace& trace = imported.trace;
  const OperatorMatch match = identity(capture, execution);
  trace.knowledge.allocations = false;
  derived.storages = join_storages(imported, capture, execution, match);
  std::vector<std::uint32_t> node_of_op;
  derived.flow = join_dataflow(imported, capture, execution, match, derived.storages, node_of_op);
  classify_storages(imported, capture, execution, match, derived.storages);
  if (settings.set_costs) set_costs(trace, execution, node_of_op, derived);
  set_storage_shapes(trace, execution, derived.storages);
  derived.saved = mark_saved_tensors(trace, autograd_nodes(imported, capture));
  derived.lives = derive_lifetimes(imported, capture, execution, match, derived.storages, settings.waited);
  trace.knowledge.dataflow = true;
  trace.knowledge.shapes |= settings.set_costs;
  return derived;
}

std::string lifetimes_sentence(const DerivedLifetimes& lives) {
  return fmt::format(
      "The file says neither when memory was allocated nor when it was freed. A storage is "
      "allocated before its first use and freed behind its last, a lower bound of its real "
      "life; gradients live until the next Optimizer.zero_grad or the end ({} storages). "
      "Peaks are therefore lower bounds, and workspaces of kernels are not among them.",
      lives.kept);
}

Decision saved_decision(const SavedTensors& saved) {
  return {"what autograd keeps",
          fmt::format("What an op of backward reads, and the operator with its sequence number has read or made: {} "
                      "contents, of {} nodes.",
                      saved.saves, saved.nodes),
          0, 0, NoteKind::assumed};
}

std::vector<Decision> decisions_of(const DerivedDataflow& d) {
  std::vector<Decision> list;
  list.push_back({"lifetimes derived", lifetimes_sentence(d.lives), d.lives.freed, d.lives.made, NoteKind::assumed});
  list.push_back({"storages identified",
                  fmt::format("Ids of storages are pointers and come back. An id is a new storage where an operator "
                              "hands it out without having received it: {} made in the step ({:.3f} GB in all), {} "
                              "older ones ({:.3f} GB).",
                              d.storages.births, static_cast<double>(d.storages.birth_bytes) * 1e-9,
                              d.storages.preexisting, static_cast<double>(d.storages.preexisting_bytes) * 1e-9),
                  d.lives.made, d.storages.births, NoteKind::assumed});
  list.push_back({"dataflow",
                  fmt::format("Device ops read the inputs and write the outputs of their operators: {} reads, {} "
                              "writes; {} reads of what no op in the file wrote are left out.",
                              d.flow.reads, d.flow.writes, d.flow.left_out_unwritten + d.flow.left_out_dead),
                  d.flow.with_uses, d.flow.device_ops, NoteKind::assumed});
  if (d.saved.nodes > 0) list.push_back(saved_decision(d.saved));
  if (d.convolutions > 0)
    list.push_back({"convolutions in TF32",
                    d.tf32_stated
                        ? fmt::format("Those of single precision: cudnn_convolution says allow_tf32={}.", d.tf32)
                        : std::string("Those of single precision: the file does not say, and PyTorch's default is to "
                                      "allow it (torch.backends.cudnn.allow_tf32)."),
                    d.tf32 ? d.convolutions : 0, d.convolutions, NoteKind::assumed});
  return list;
}

}  // namespace memwall
