#include "models/workload/import/execution_trace/device_work_of_nodes.h"

#include <algorithm>
#include <set>
#include <string>
#include <unordered_set>
#include <utility>

#include "models/workload/import/execution_trace/operator_schema.h"
#include "models/workload/import/timed/name_text.h"

namespace memwall {
namespace {

using std::string_view;
using Ids = std::unordered_set<std::int64_t>;  // storage ids; looked up and merged only

bool allocates_only(string_view plain) {
  return plain.starts_with("empty") || plain.starts_with("new_empty") || plain.starts_with("_empty") ||
         plain.starts_with("resize") || plain == "set_" || plain == "pin_memory" || plain == "_pin_memory" ||
         plain == "set_data";
}

// Their schemas mark an argument as written, of which they change what the host knows of it.
bool changes_no_content(string_view plain) {
  static constexpr string_view kNames[] = {"record_stream", "requires_grad_", "detach_",    "squeeze_", "unsqueeze_",
                                           "transpose_",    "swapaxes_",      "swapdims_",  "t_",       "as_strided_",
                                           "rename_",       "retain_grad",    "_coalesced_"};
  return std::find(std::begin(kNames), std::end(kNames), plain) != std::end(kNames);
}

bool fills(string_view plain) { return plain == "fill_" || plain == "zero_"; }

// What is filled inside and then handed out as it is.
bool creates_filled(string_view plain) {
  for (const string_view part : {"zeros", "ones", "full", "zero_", "fill_", "scalar_tensor"})
    if (plain.find(part) != string_view::npos) return true;
  return false;
}

bool communicates(string_view name) {
  return name.starts_with("c10d::") || name.starts_with("nccl:") || name.starts_with("rccl:") ||
         name == "record_param_comms";
}

bool on_device(const TensorUse& t) { return t.on_device && t.defined() && t.bytes() > 0; }

bool any_on_device(std::span<const TensorUse> tensors) {
  return std::any_of(tensors.begin(), tensors.end(), on_device);
}

void merge(Ids& into, Ids& from) {
  if (into.size() < from.size()) std::swap(into, from);
  into.insert(from.begin(), from.end());
}

// What happened inside a node, itself included.
struct Inside {
  Ids computed, filled, read;
  bool collective = false;
};

class Finder {
 public:
  Finder(const ExecutionTrace& execution, const ExecutionOrder& order)
      : execution_(execution), order_(order), inside_(execution.nodes.size()) {
    works_.work.assign(execution.nodes.size(), NodeDeviceWork::none);
    works_.dispatched.assign(execution.nodes.size(), false);
    is_leaf_.assign(execution.nodes.size(), true);
    for (std::uint32_t n = 0; n < execution.nodes.size(); ++n)
      if (order.parent[n] != kNoIndex && is_operator(execution, execution.nodes[n])) is_leaf_[order.parent[n]] = false;
  }

  NodeDeviceWorks run() && {
    for (const std::uint32_t n : order_.ends) {
      decide(n);
      hand_up(n);
    }
    find_dispatched();
    find_devices();
    return std::move(works_);
  }

 private:
  struct Effects {
    std::vector<std::int64_t> written, read;  // storage ids on devices
  };

  void decide(std::uint32_t n);
  bool decide_collective(std::uint32_t n, const std::string& name);
  NodeDeviceWork copy_or_kernel(const ExecutionNode& node, string_view plain) const;
  Effects effects_of(const ExecutionNode& node) const;
  bool runs_itself(std::uint32_t n, string_view plain, const Effects& effects) const;
  void hand_up(std::uint32_t n);
  void find_dispatched();
  void find_devices();

  const ExecutionTrace& execution_;
  const ExecutionOrder& order_;
  std::vector<Inside> inside_;  // emptied once the node around has it
  std::vector<bool> is_leaf_;
  NodeDeviceWorks works_;
};

Finder::Effects Finder::effects_of(const ExecutionNode& node) const {
  const OperatorSchema schema = parse_schema(execution_.strings[node.schema]);
  const std::string& name = execution_.name(node);
  Effects effects;
  Ids received;
  for (const TensorUse& t : execution_.inputs(node)) {
    if (!on_device(t)) continue;
    received.insert(t.storage);
    (writes_argument(schema, name, t.argument) ? effects.written : effects.read).push_back(t.storage);
  }
  for (const TensorUse& t : execution_.outputs(node))
    if (on_device(t) && !received.contains(t.storage)) effects.written.push_back(t.storage);
  return effects;
}

bool Finder::runs_itself(std::uint32_t n, string_view plain, const Effects& effects) const {
  const Inside& inside = inside_[n];
  bool only_filled = false;
  for (const std::int64_t s : effects.written) {
    if (inside.computed.contains(s)) continue;
    if (!inside.filled.contains(s)) return true;
    only_filled = true;
  }
  if (!only_filled || creates_filled(plain)) return false;
  return std::any_of(effects.read.begin(), effects.read.end(),
                     [&](std::int64_t s) { return !inside.read.contains(s); });
}

NodeDeviceWork Finder::copy_or_kernel(const ExecutionNode& node, string_view plain) const {
  if (plain != "copy_") return NodeDeviceWork::kernel;
  const TensorUse *to = nullptr, *from = nullptr;
  for (const TensorUse& t : execution_.inputs(node)) {
    if (t.argument == 0) to = &t;
    if (t.argument == 1) from = &t;
  }
  if (to == nullptr || from == nullptr || to->device == from->device) return NodeDeviceWork::kernel;
  if (!to->on_device) return NodeDeviceWork::copy_to_host;
  return from->on_device ? NodeDeviceWork::copy_between_devices : NodeDeviceWork::copy_to_device;
}

bool Finder::decide_collective(std::uint32_t n, const std::string& name) {
  if (!communicates(name)) return false;
  const ExecutionNode& node = execution_.nodes[n];
  const bool left_to_caller = name == "record_param_comms" && order_.parent[n] != kNoIndex &&
                              execution_.name(execution_.nodes[order_.parent[n]]).starts_with("c10d::");
  if (inside_[n].collective || left_to_caller || !any_on_device(execution_.inputs(node))) return true;
  works_.work[n] = NodeDeviceWork::collective;
  inside_[n].collective = true;
  for (const TensorUse& t : execution_.inputs(node)) inside_[n].computed.insert(t.storage);
  for (const TensorUse& t : execution_.outputs(node)) inside_[n].computed.insert(t.storage);
  return true;
}

void Finder::decide(std::uint32_t n) {
  const ExecutionNode& node = execution_.nodes[n];
  const std::string& name = execution_.name(node);
  if (decide_collective(n, name) || !is_operator(execution_, node)) return;
  const string_view plain = base_name(name);
  if (!any_on_device(execution_.inputs(node)) && !any_on_device(execution_.outputs(node))) {
    ++works_.host_operators;
    return;
  }
  if (allocates_only(plain) || changes_no_content(plain)) return;
  const Effects effects = effects_of(node);
  Inside& inside = inside_[n];
  if (node.kernel_backend != 0) {
    works_.work[n] = NodeDeviceWork::kernel;
    ++works_.compiled_kernels;
  } else if (plain == "_local_scalar_dense") {
    works_.work[n] = NodeDeviceWork::copy_to_host;
  } else if (is_leaf_[n] && plain == "copy_" && copy_or_kernel(node, plain) == NodeDeviceWork::copy_to_host) {
    works_.work[n] = NodeDeviceWork::copy_to_host;
  } else if (runs_itself(n, plain, effects)) {
    works_.work[n] = copy_or_kernel(node, plain);
  }
  if (works_.work[n] == NodeDeviceWork::none) return;
  (fills(plain) ? inside.filled : inside.computed).insert(effects.written.begin(), effects.written.end());
  inside.read.insert(effects.read.begin(), effects.read.end());
}

void Finder::hand_up(std::uint32_t n) {
  Inside inside = std::exchange(inside_[n], {});
  const std::uint32_t parent = order_.parent[n];
  if (parent == kNoIndex ||
      (execution_.nodes[parent].scope == 7 && !communicates(execution_.name(execution_.nodes[parent]))))
    return;
  Inside& around = inside_[parent];
  merge(around.computed, inside.computed);
  merge(around.filled, inside.filled);
  merge(around.read, inside.read);
  around.collective |= inside.collective;
}

// What is called from within a kernel's own operator is not dispatched again; of operators made of others the
// innermost count.
void Finder::find_dispatched() {
  std::vector<bool> within(execution_.nodes.size(), false);
  for (std::uint32_t n = 0; n < execution_.nodes.size(); ++n) {
    const std::uint32_t parent = order_.parent[n];
    if (parent != kNoIndex) within[n] = within[parent] || works_.work[parent] != NodeDeviceWork::none;
    if (within[n] || !is_operator(execution_, execution_.nodes[n])) continue;
    works_.dispatched[n] = is_leaf_[n] || works_.work[n] != NodeDeviceWork::none;
  }
}

void Finder::find_devices() {
  std::set<std::int16_t> devices;
  for (const TensorUse& t : execution_.tensors)
    if (on_device(t)) devices.insert(t.device);
  works_.devices.assign(devices.begin(), devices.end());
}

}  // namespace

NodeDeviceWorks device_work_of_nodes(const ExecutionTrace& execution, const ExecutionOrder& order) {
  return Finder(execution, order).run();
}

void mark_compiled_outputs(ExecutionTrace& execution) {
  Ids known;
  for (ExecutionNode& node : execution.nodes) {
    std::span<const TensorUse> inputs = execution.inputs(node);
    const auto last = std::find_if(inputs.rbegin(), inputs.rend(), on_device);
    const bool compiled = node.kernel_backend != 0 && node.schema == 0 && node.output_count == 0;
    if (compiled && last != inputs.rend()) {
      const bool at_end = last == inputs.rbegin();
      if (at_end && !known.contains(last->storage)) {
        --node.input_count;
        node.first_output = node.first_input + node.input_count;
        node.output_count = 1;
      } else {
        std::string schema = "compiled(";
        for (std::uint16_t a = 0; a <= last->argument; ++a)
          schema +=
              (a == 0 ? "" : ", ") + std::string(a == last->argument ? "Tensor(a!) a" : "Tensor a") + std::to_string(a);
        node.schema = execution.strings.intern(schema + ") -> ()");
      }
    }
    for (const auto& tensors : {execution.inputs(node), execution.outputs(node)})
      for (const TensorUse& t : tensors) known.insert(t.storage);
  }
}

}  // namespace memwall
