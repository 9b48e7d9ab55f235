#include "models/workload/import/execution_trace/storage_kinds.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "models/workload/import/timed/module_paths.h"
#include "models/workload/import/execution_trace/operator_schema.h"

namespace memwall {
namespace {

struct Facts {
  bool read_by_model = false, read_by_optimizer = false;  // model: forward, backward or no known phase
  bool written_forward = false, written_backward = false, written_by_optimizer = false;
  bool first_written_by_optimizer = false, filled_from_host = false;
  bool used = false, in_collective = false;
  bool weight = false, state = false, accumulated = false, dropped_by_zero_grad = false, freed = false;
};

// Names of arguments that hold trained values or their running statistics (native_functions.yaml;
// FBGEMM's table-batched embeddings).
bool names_a_parameter(std::string_view argument) {
  static constexpr std::string_view kNames[] = {"weight",      "bias",        "running_mean",     "running_var",
                                                "dev_weights", "uvm_weights", "lxu_cache_weights"};
  return std::find(std::begin(kNames), std::end(kNames), argument) != std::end(kNames);
}

// FBGEMM's embeddings update their table in the backward pass and hold the optimizer's state themselves.
bool names_a_state(std::string_view argument) { return argument.starts_with("momentum") && !argument.ends_with("s"); }

class Classifier {
 public:
  Classifier(ImportedTrace& imported, const TimedCapture& capture, const ExecutionTrace& execution,
             const OperatorMatch& match, const StorageJoin& storages)
      : imported_(imported),
        trace_(imported.trace),
        capture_(capture),
        execution_(execution),
        match_(match),
        storages_(storages),
        modules_(find_modules(capture)),
        facts_(trace_.storages.size()) {}

  void run() {
    read_uses();
    read_arguments();
    read_lives();
    for (StorageId s = 0; s < facts_.size(); ++s) {
      trace_.storages[s].kind = kind_of(s);
      if (trace_.storages[s].label == 0) trace_.storages[s].label = trace_.strings.intern(label_of(s));
    }
    label_by_lists();
  }

 private:
  void read_uses();
  void note_use(const Op& op, const Use& use);
  void read_arguments();
  void read_lives();
  StorageKind kind_of(StorageId s) const;
  StorageKind kind_of_older(const Facts& f) const;
  StorageKind kind_of_made(StorageId s, const Facts& f) const;
  std::string label_of(StorageId s) const;
  std::string label_of_made(StorageId s) const;
  std::string label_of_parameter(std::uint32_t tensor) const;
  std::string operator_label(std::uint32_t captured_operator) const;
  void label_by_lists();
  void label_by_list(const ExecutionNode& node);

  ImportedTrace& imported_;
  Trace& trace_;
  const TimedCapture& capture_;
  const ExecutionTrace& execution_;
  const OperatorMatch& match_;
  const StorageJoin& storages_;
  ModulePaths modules_;
  std::vector<Facts> facts_;
  std::vector<std::uint32_t> weight_tensor_;      // by storage: the first use as a weight
  std::vector<std::uint32_t> node_of_tensor_;     // by tensor
  std::vector<std::uint32_t> operator_of_alloc_;  // by storage: innermost captured operator
};

void Classifier::read_uses() {
  for (const Op& op : trace_.ops)
    for (const Use& use : trace_.uses_of(op)) note_use(op, use);
}

void Classifier::note_use(const Op& op, const Use& use) {
  Facts& f = facts_[use.storage];
  f.used = true;
  f.in_collective |= op.kind == OpKind::collective;
  const bool optimizer = op.phase == Phase::optimizer;
  if (use.access == Access::read) {
    (optimizer ? f.read_by_optimizer : f.read_by_model) = true;
    return;
  }
  if (use.version == 1) {
    f.first_written_by_optimizer = optimizer;
    f.filled_from_host = op.kind == OpKind::copy && op.from < trace_.places.size() && trace_.places[op.from] == "host";
  }
  if (optimizer)
    f.written_by_optimizer = true;
  else
    (op.phase == Phase::backward ? f.written_backward : f.written_forward) = true;
}

void Classifier::read_arguments() {
  weight_tensor_.assign(trace_.storages.size(), kNoIndex);
  node_of_tensor_.assign(execution_.tensors.size(), 0);
  for (std::uint32_t number = 0; number < execution_.nodes.size(); ++number) {
    const ExecutionNode& node = execution_.nodes[number];
    std::fill_n(node_of_tensor_.begin() + node.first_input, node.input_count, number);
    std::fill_n(node_of_tensor_.begin() + node.first_output, node.output_count, number);
    const bool accumulates = execution_.name(node).find("AccumulateGrad") != std::string::npos;
    const OperatorSchema schema = parse_schema(execution_.strings[node.schema]);
    for (std::uint32_t i = node.first_input; i < node.first_input + node.input_count; ++i) {
      const StorageId s = storages_.storage_of_tensor[i];
      if (s == kNoStorage) continue;
      facts_[s].accumulated |= accumulates;
      const std::string_view argument = schema.name(execution_.tensors[i].argument);
      facts_[s].state |= names_a_state(argument);
      if (!names_a_parameter(argument)) continue;
      facts_[s].weight = true;
      if (weight_tensor_[s] == kNoIndex) weight_tensor_[s] = i;
    }
  }
}

void Classifier::read_lives() {
  operator_of_alloc_.assign(trace_.storages.size(), kNoIndex);
  for (std::size_t id = 0; id < trace_.ops.size(); ++id) {
    if (trace_.ops[id].kind == OpKind::alloc) operator_of_alloc_[trace_.ops[id].target] = imported_.operator_of_op[id];
    if (trace_.ops[id].kind != OpKind::free) continue;
    Facts& f = facts_[trace_.ops[id].target];
    f.freed = true;
    for (std::uint32_t k = imported_.operator_of_op[id]; k != kNoIndex; k = capture_.operators[k].parent)
      f.dropped_by_zero_grad |= capture_.text(capture_.operators[k].name).starts_with("Optimizer.zero_grad");
  }
}

StorageKind Classifier::kind_of(StorageId s) const {
  const Facts& f = facts_[s];
  return trace_.storages[s].preexisting ? kind_of_older(f) : kind_of_made(s, f);
}

StorageKind Classifier::kind_of_older(const Facts& f) const {
  if (f.written_backward && f.read_by_optimizer) return StorageKind::gradient;
  if (f.state) return StorageKind::optimizer_state;
  if (!f.used) return f.dropped_by_zero_grad ? StorageKind::gradient : StorageKind::unknown;
  if (f.weight || (f.written_by_optimizer && f.read_by_model)) return StorageKind::parameter;
  if (f.written_by_optimizer || (f.read_by_optimizer && !f.read_by_model)) return StorageKind::optimizer_state;
  return f.read_by_model && !f.written_backward ? StorageKind::input : StorageKind::unknown;
}

StorageKind Classifier::kind_of_made(StorageId s, const Facts& f) const {
  const bool returned = storages_.tensor_of_storage[s] != kNoIndex;
  if (!returned) return StorageKind::workspace;
  const bool outlives = trace_.knowledge.allocations && !f.freed;
  // Without a gradient to add to, AccumulateGrad keeps the tensor that it is handed.
  if ((f.accumulated && outlives) || (f.written_backward && f.read_by_optimizer)) return StorageKind::gradient;
  if (f.first_written_by_optimizer) return outlives ? StorageKind::optimizer_state : StorageKind::workspace;
  if (f.filled_from_host) return StorageKind::input;
  if (f.in_collective) return StorageKind::communication_buffer;
  return StorageKind::activation;
}

// "VGG_0.Sequential_0.Conv2d_3.weight", or "aten::conv2d.weight" without modules.
std::string Classifier::label_of_parameter(std::uint32_t tensor) const {
  const ExecutionNode& node = execution_.nodes[node_of_tensor_[tensor]];
  const OperatorSchema schema = parse_schema(execution_.strings[node.schema]);
  const std::string argument(schema.name(execution_.tensors[tensor].argument));
  const std::uint32_t k = match_.operator_of_node[node_of_tensor_[tensor]];
  const std::uint32_t module = k != kNoIndex ? modules_.of_operator[k] : kNoIndex;
  return (module != kNoIndex ? modules_.paths[module] : execution_.name(node)) + "." + argument;
}

// "VGG_0.Sequential_0.Conv2d_3 aten::cudnn_convolution".
std::string Classifier::operator_label(std::uint32_t captured_operator) const {
  const std::uint32_t module = modules_.of_operator[captured_operator];
  const std::string& name = capture_.text(capture_.operators[captured_operator].name);
  return module != kNoIndex ? modules_.paths[module] + " " + name : name;
}

std::string Classifier::label_of(StorageId s) const {
  const Storage& storage = trace_.storages[s];
  if (weight_tensor_[s] != kNoIndex) return label_of_parameter(weight_tensor_[s]);
  if (!storage.preexisting) return label_of_made(s);
  const std::uint32_t tensor = storages_.tensor_of_storage[s];
  if (tensor != kNoIndex)
    return std::string(to_string(storage.kind)) + ", first used by " +
           execution_.name(execution_.nodes[node_of_tensor_[tensor]]);
  return storage.kind == StorageKind::gradient ? "gradient of the step before" : "";
}

// By the operator that returns it, or that was open when it was allocated.
std::string Classifier::label_of_made(StorageId s) const {
  const std::uint32_t node = storages_.node_of_storage[s];
  const std::uint32_t k = node != kNoIndex ? match_.operator_of_node[node] : operator_of_alloc_[s];
  if (k != kNoIndex) return operator_label(k);
  return node != kNoIndex ? execution_.name(execution_.nodes[node]) : "";
}

// Operators on lists take the parameter, its gradient and its states at equal positions.
void Classifier::label_by_lists() {
  for (int round = 0; round < 2; ++round)  // a gradient may meet its parameter only through a state
    for (const ExecutionNode& node : execution_.nodes) {
      const std::string& name = execution_.name(node);
      if (name.find("_foreach_") != std::string::npos || name.find("_fused_") != std::string::npos) label_by_list(node);
    }
}

void Classifier::label_by_list(const ExecutionNode& node) {
  std::vector<std::vector<StorageId>> lists;
  const std::span<const TensorUse> tensors = execution_.inputs(node);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (lists.empty() || tensors[i].argument != tensors[i - 1].argument) lists.emplace_back();
    lists.back().push_back(storages_.storage_of_tensor[node.first_input + i]);
  }
  for (std::size_t e = 0; !lists.empty() && e < lists[0].size(); ++e) {
    std::string owner;
    for (const auto& list : lists) {
      if (e >= list.size() || list[e] == kNoStorage || !owner.empty()) continue;
      const std::string& label = trace_.strings[trace_.storages[list[e]].label];
      const std::size_t of = label.rfind(" of ");
      if (trace_.storages[list[e]].kind == StorageKind::parameter)
        owner = label;
      else if (of != std::string::npos && trace_.storages[list[e]].kind != StorageKind::input)
        owner = label.substr(of + 4);
    }
    for (const auto& list : lists) {
      if (owner.empty() || e >= list.size() || list[e] == kNoStorage) continue;
      Storage& storage = trace_.storages[list[e]];
      if (storage.kind == StorageKind::gradient) storage.label = trace_.strings.intern("gradient of " + owner);
      if (storage.kind == StorageKind::optimizer_state)
        storage.label = trace_.strings.intern("optimizer state of " + owner);
    }
  }
}

}  // namespace

void classify_storages(ImportedTrace& imported, const TimedCapture& capture, const ExecutionTrace& execution,
                       const OperatorMatch& match, const StorageJoin& storages) {
  Classifier(imported, capture, execution, match, storages).run();
}

}  // namespace memwall
