#include "models/workload/import/execution_trace/dataflow.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string_view>

#include "models/workload/import/execution_trace/operator_schema.h"
#include "sim/error.h"

namespace memwall {
namespace {

constexpr std::int64_t kBefore = -1;  // before the first op
constexpr std::int64_t kNever64 = std::numeric_limits<std::int64_t>::max();

struct Effect {
  OpId op = 0;
  StorageId storage = kNoStorage;
  Access access = Access::read;
  bool in_place = false;  // a read of what the same op writes
};

// A storage that an operator receives.
struct Input {
  StorageId storage = kNoStorage;
  std::size_t element = 0, elements = 1;  // position in its list; 0 of 1 for a single tensor
};

// A storage that an operator writes.
struct Output {
  StorageId storage = kNoStorage;
  std::size_t element = 0, elements = 1;
  bool reads_itself = false;         // keeps part of the old content
  std::int64_t available = kBefore;  // the op that allocates it
  std::size_t first = 0, last = 0;   // the kernels that make it, as positions among the operator's
};

// Operators that replace the whole content of their first argument.
bool overwrites(std::string_view name) {
  static constexpr std::string_view kFills[] = {"zero_",      "fill_",        "copy_",      "uniform_",
                                                "normal_",    "random_",      "bernoulli_", "cauchy_",
                                                "geometric_", "exponential_", "log_normal_"};
  const std::size_t colon = name.rfind(':');
  const std::string_view plain = colon == std::string_view::npos ? name : name.substr(colon + 1);
  return std::find(std::begin(kFills), std::end(kFills), plain) != std::end(kFills);
}

bool on_lists(std::string_view name) {
  return name.find("_foreach_") != std::string_view::npos || name.find("_fused_") != std::string_view::npos;
}

// Schemas of c10d operators do not mark what they write; their names for it begin with "output".
bool writes(const OperatorSchema& schema, std::string_view name, std::size_t position, bool collective) {
  return writes_argument(schema, name, position) || (collective && schema.name(position).starts_with("output"));
}

class Flow {
 public:
  Flow(ImportedTrace& imported, const TimedCapture& capture, const ExecutionTrace& execution,
       const OperatorMatch& match, const StorageJoin& storages, std::vector<std::uint32_t>& node_of_op)
      : imported_(imported),
        trace_(imported.trace),
        capture_(capture),
        execution_(execution),
        match_(match),
        storages_(storages),
        node_of_op_(node_of_op) {}

  DataflowCounts run() {
    find_use_ranges();
    group_ops();
    group_workspaces();
    // Operators inside another have higher numbers, so they come first.
    for (std::uint32_t node = static_cast<std::uint32_t>(execution_.nodes.size()); node-- > 0;) plan(node);
    std::stable_sort(effects_.begin(), effects_.end(), [](const Effect& a, const Effect& b) { return a.op < b.op; });
    write_uses();
    return counts_;
  }

 private:
  void find_use_ranges();
  void group_ops();
  void group_workspaces();
  bool on_device(std::uint32_t node) const;
  std::uint32_t node_around(std::uint32_t captured_operator, bool collective) const;
  void plan(std::uint32_t node);
  std::vector<Input> inputs_of(const ExecutionNode& node, bool collective) const;
  std::vector<Output> outputs_of(std::uint32_t node, bool collective);
  void add_written_inputs(const ExecutionNode& node, bool collective, std::vector<Output>& out) const;
  void add_in_place(const ExecutionNode& node, std::vector<Output>& out) const;
  static void read_through_outputs(std::vector<Input>& inputs, std::vector<Output>& outputs);
  void place_outputs(std::span<const OpId> ops, std::vector<Output>& outputs) const;
  void add_effects(std::uint32_t node, std::span<const OpId> ops, const std::vector<Input>& inputs,
                   const std::vector<Output>& outputs);
  void add_list_effects(std::span<const OpId> ops, const std::vector<Input>& inputs,
                        const std::vector<Output>& outputs);
  void write_uses();
  void write_op(OpId id, std::size_t& next);

  ImportedTrace& imported_;
  Trace& trace_;
  const TimedCapture& capture_;
  const ExecutionTrace& execution_;
  const OperatorMatch& match_;
  const StorageJoin& storages_;
  std::vector<std::uint32_t>& node_of_op_;

  std::vector<std::int64_t> born_, freed_;  // by storage: op, kBefore or kNever64
  std::vector<std::vector<OpId>> ops_of_node_;
  std::vector<std::vector<StorageId>> workspaces_of_node_;
  std::vector<bool> computed_;  // by storage: an operator already planned makes it
  std::vector<Effect> effects_;
  std::vector<std::uint32_t> version_;
  std::vector<bool> alive_;
  std::vector<Use> uses_;
  DataflowCounts counts_;
};

void Flow::find_use_ranges() {
  born_.assign(trace_.storages.size(), kBefore);
  freed_.assign(trace_.storages.size(), kNever64);
  for (OpId id = 0; id < trace_.ops.size(); ++id) {
    const Op& op = trace_.ops[id];
    if (op.kind == OpKind::alloc) born_[op.target] = id;
    if (op.kind == OpKind::free) freed_[op.target] = id;
  }
}

bool Flow::on_device(std::uint32_t node) const {
  const ExecutionNode& n = execution_.nodes[node];
  const auto any = [&](std::uint32_t first, std::uint32_t count) {
    for (std::uint32_t i = first; i < first + count; ++i)
      if (storages_.storage_of_tensor[i] != kNoStorage) return true;
    return false;
  };
  return any(n.first_input, n.input_count) || any(n.first_output, n.output_count);
}

// The innermost operator around that has something to do with the device. A collective is launched
// under "nccl:all_to_all", which lists its inputs only; the c10d operator around that lists all.
std::uint32_t Flow::node_around(std::uint32_t k, bool collective) const {
  std::uint32_t innermost = kNoIndex;
  for (; k != kNoIndex; k = capture_.operators[k].parent) {
    const std::uint32_t node = match_.node_of_operator[k];
    if (node == kNoIndex || !on_device(node)) continue;
    if (!collective) return node;
    if (innermost == kNoIndex) innermost = node;
    if (execution_.name(execution_.nodes[node]).starts_with("c10d::")) return node;
  }
  return innermost;
}

void Flow::group_ops() {
  node_of_op_.assign(trace_.ops.size(), kNoIndex);
  ops_of_node_.resize(execution_.nodes.size());
  for (OpId id = 0; id < trace_.ops.size(); ++id) {
    if (!runs_on_device(trace_.ops[id].kind)) continue;
    if (trace_.ops[id].placed) {
      ++counts_.placed;
      continue;
    }
    ++counts_.device_ops;
    const std::uint32_t node = node_around(imported_.operator_of_op[id], trace_.ops[id].kind == OpKind::collective);
    if (node == kNoIndex) continue;
    ++counts_.with_operator;
    node_of_op_[id] = node;
    ops_of_node_[node].push_back(id);
  }
}

void Flow::group_workspaces() {
  workspaces_of_node_.resize(execution_.nodes.size());
  for (OpId id = 0; id < trace_.ops.size(); ++id) {
    const Op& op = trace_.ops[id];
    if (op.kind != OpKind::alloc || storages_.tensor_of_storage[op.target] != kNoIndex) continue;
    const std::uint32_t node = node_around(imported_.operator_of_op[id], false);
    if (node != kNoIndex) workspaces_of_node_[node].push_back(op.target);
  }
}

void Flow::plan(std::uint32_t node) {
  const std::vector<OpId>& ops = ops_of_node_[node];
  if (ops.empty()) return;
  computed_.resize(trace_.storages.size(), false);
  const ExecutionNode& n = execution_.nodes[node];
  const bool collective =
      std::any_of(ops.begin(), ops.end(), [&](OpId id) { return trace_.ops[id].kind == OpKind::collective; });
  std::vector<Input> inputs = inputs_of(n, collective);
  std::vector<Output> outputs = outputs_of(node, collective);
  read_through_outputs(inputs, outputs);
  if (on_lists(execution_.name(n))) return add_list_effects(ops, inputs, outputs);
  place_outputs(ops, outputs);
  add_effects(node, ops, inputs, outputs);
}

// Each storage once, with its place in the longest list that holds it.
std::vector<Input> Flow::inputs_of(const ExecutionNode& node, bool collective) const {
  const OperatorSchema schema = parse_schema(execution_.strings[node.schema]);
  const std::string& name = execution_.name(node);
  const std::span<const TensorUse> tensors = execution_.inputs(node);
  std::vector<Input> result;
  for (std::size_t i = 0; i < tensors.size();) {
    std::size_t end = i;
    while (end < tensors.size() && tensors[end].argument == tensors[i].argument) ++end;
    // A written argument is read as an output that keeps its content, or not at all.
    const bool written = writes(schema, name, tensors[i].argument, collective);
    for (std::size_t e = i; e < end && !written; ++e) {
      const StorageId s = storages_.storage_of_tensor[node.first_input + e];
      if (s != kNoStorage) result.push_back({s, e - i, end - i});
    }
    i = end;
  }
  std::stable_sort(result.begin(), result.end(), [](const Input& a, const Input& b) {
    return a.storage != b.storage ? a.storage < b.storage : a.elements > b.elements;
  });
  result.erase(
      std::unique(result.begin(), result.end(), [](const Input& a, const Input& b) { return a.storage == b.storage; }),
      result.end());
  return result;
}

std::vector<Output> Flow::outputs_of(std::uint32_t node, bool collective) {
  const ExecutionNode& n = execution_.nodes[node];
  std::vector<Output> result;
  add_written_inputs(n, collective, result);
  for (std::uint32_t i = 0; i < n.output_count; ++i) {
    const StorageId s = storages_.storage_of_tensor[n.first_output + i];
    if (s == kNoStorage || storages_.node_of_storage[s] == kNoIndex) continue;
    const bool made_inside = storages_.node_of_storage[s] >= node;
    if (!made_inside || computed_[s]) continue;
    computed_[s] = true;
    result.push_back({s, i, n.output_count, false, born_[s], 0, 0});
  }
  if (collective && result.empty()) add_in_place(n, result);
  std::stable_sort(result.begin(), result.end(),
                   [](const Output& a, const Output& b) { return a.storage < b.storage; });
  result.erase(std::unique(result.begin(), result.end(),
                           [](const Output& a, const Output& b) { return a.storage == b.storage; }),
               result.end());
  return result;
}

void Flow::add_written_inputs(const ExecutionNode& node, bool collective, std::vector<Output>& out) const {
  const OperatorSchema schema = parse_schema(execution_.strings[node.schema]);
  const std::string& name = execution_.name(node);
  const std::span<const TensorUse> tensors = execution_.inputs(node);
  for (std::size_t i = 0; i < tensors.size();) {
    std::size_t end = i;
    while (end < tensors.size() && tensors[end].argument == tensors[i].argument) ++end;
    const std::uint16_t argument = tensors[i].argument;
    for (std::size_t e = i; e < end && writes(schema, name, argument, collective); ++e) {
      const StorageId s = storages_.storage_of_tensor[node.first_input + e];
      if (s == kNoStorage) continue;
      const std::uint32_t whole = storages_.tensor_of_storage[s];
      const bool covers = whole != kNoIndex && tensors[e].bytes() >= execution_.tensors[whole].bytes();
      const bool replaces = (overwrites(name) && argument == 0) || schema.name(argument).starts_with("out");
      out.push_back({s, e - i, end - i, !(covers && replaces), born_[s], 0, 0});
    }
    i = end;
  }
}

// A collective that names no output works in place (allreduce_, broadcast_).
void Flow::add_in_place(const ExecutionNode& node, std::vector<Output>& out) const {
  for (std::uint32_t i = node.first_input; i < node.first_input + node.input_count; ++i)
    if (const StorageId s = storages_.storage_of_tensor[i]; s != kNoStorage)
      out.push_back({s, 0, 1, true, born_[s], 0, 0});
}

// What is received by one argument and written through another is read where it is written.
void Flow::read_through_outputs(std::vector<Input>& inputs, std::vector<Output>& outputs) {
  const auto by_storage = [](const Output& o, StorageId s) { return o.storage < s; };  // both are sorted by storage
  std::erase_if(inputs, [&](const Input& input) {
    const auto found = std::lower_bound(outputs.begin(), outputs.end(), input.storage, by_storage);
    if (found == outputs.end() || found->storage != input.storage) return false;
    found->reads_itself = true;
    return true;
  });
}

// Gives each output the kernels between its allocation and that of the next output, where there are any.
void Flow::place_outputs(std::span<const OpId> ops, std::vector<Output>& outputs) const {
  std::vector<std::size_t> start(outputs.size());
  for (std::size_t w = 0; w < outputs.size(); ++w) {
    const auto after = std::find_if(ops.begin(), ops.end(),
                                    [&](OpId id) { return static_cast<std::int64_t>(id) > outputs[w].available; });
    start[w] = static_cast<std::size_t>(after - ops.begin());
  }
  for (std::size_t w = 0; w < outputs.size(); ++w) {
    std::size_t next = ops.size();
    for (const std::size_t other : start)
      if (other > start[w]) next = std::min(next, other);
    // An output that is only allocated after the last kernel is made by none of them.
    outputs[w].first = start[w];
    outputs[w].last = next == 0 ? 0 : next - 1;
  }
}

void Flow::add_effects(std::uint32_t node, std::span<const OpId> ops, const std::vector<Input>& inputs,
                       const std::vector<Output>& outputs) {
  std::vector<StorageId> scratch_written;
  for (std::size_t j = 0; j < ops.size(); ++j) {
    const OpId op = ops[j];
    const auto makes = [&](const Output& o) { return o.first <= j && j <= o.last && o.first < ops.size(); };
    const bool last =
        std::any_of(outputs.begin(), outputs.end(), [&](const Output& o) { return makes(o) && j == o.last; });
    std::vector<StorageId> scratch;
    for (const StorageId s : workspaces_of_node_[node])
      if (born_[s] < static_cast<std::int64_t>(op) && static_cast<std::int64_t>(op) < freed_[s]) scratch.push_back(s);
    for (const Input& input : inputs) effects_.push_back({op, input.storage, Access::read});
    for (const StorageId s : scratch)
      if (std::find(scratch_written.begin(), scratch_written.end(), s) != scratch_written.end())
        effects_.push_back({op, s, Access::read});
    std::vector<StorageId> written;
    for (const Output& o : outputs) {
      if (!makes(o)) continue;
      const bool makes_version = j == o.last || scratch.empty();
      const bool continues = scratch.empty() ? j > o.first : false;
      if (o.reads_itself || continues) effects_.push_back({op, o.storage, Access::read, true});
      if (makes_version) written.push_back(o.storage);
    }
    for (const StorageId s : scratch) {
      const bool before = std::find(scratch_written.begin(), scratch_written.end(), s) != scratch_written.end();
      if (last && before) continue;
      written.push_back(s);
      if (!before) scratch_written.push_back(s);
    }
    for (const StorageId s : written) effects_.push_back({op, s, Access::write});
  }
}

void Flow::add_list_effects(std::span<const OpId> ops, const std::vector<Input>& inputs,
                            const std::vector<Output>& outputs) {
  // Element e of a list of length l belongs to kernel e * n / l; a single tensor to all.
  const auto kernel_of = [&](std::size_t element, std::size_t elements) { return element * ops.size() / elements; };
  const auto for_each = [&](std::size_t element, std::size_t elements, const auto& action) {
    if (elements > 1) return action(ops[kernel_of(element, elements)]);
    for (const OpId op : ops) action(op);
  };
  for (const Input& i : inputs)
    for_each(i.element, i.elements, [&](OpId op) { effects_.push_back({op, i.storage, Access::read}); });
  for (const Output& o : outputs)
    if (o.reads_itself)
      for_each(o.element, o.elements, [&](OpId op) { effects_.push_back({op, o.storage, Access::read, true}); });
  for (const Output& o : outputs)
    for_each(o.element, o.elements, [&](OpId op) { effects_.push_back({op, o.storage, Access::write}); });
}

void Flow::write_uses() {
  version_.assign(trace_.storages.size(), 0);
  alive_.assign(trace_.storages.size(), !trace_.knowledge.allocations);
  for (StorageId s = 0; s < trace_.storages.size(); ++s)
    if (trace_.storages[s].preexisting) alive_[s] = true;
  std::size_t next = 0;
  for (OpId id = 0; id < trace_.ops.size(); ++id) {
    write_op(id, next);
    const Op& op = trace_.ops[id];
    if (op.kind == OpKind::alloc) alive_[op.target] = true;
    if (op.kind == OpKind::free) alive_[op.target] = false;
  }
  trace_.uses = std::move(uses_);
}

void Flow::write_op(OpId id, std::size_t& next) {
  Op& op = trace_.ops[id];
  const std::size_t first = uses_.size();
  for (; next < effects_.size() && effects_[next].op == id; ++next) {
    const Effect& e = effects_[next];
    if (!alive_[e.storage]) {
      ++counts_.left_out_dead;
      continue;
    }
    std::uint32_t& version = version_[e.storage];
    if (e.access == Access::read && version == 0 && !trace_.storages[e.storage].preexisting) {
      counts_.left_out_unwritten += !e.in_place;  // the first write of a part has nothing to keep
      continue;
    }
    const bool read = e.access == Access::read;
    uses_.push_back({e.storage, read ? version : ++version, e.access});
    ++(read ? counts_.reads : counts_.writes);
  }
  if (uses_.size() - first > kMostUsesOfAnOp)
    throw InputError(fmt::format("{}: op {} ({}) uses {} storages; a trace holds at most {} per op.",
                                 execution_.path.string(), id, trace_.strings[op.name], uses_.size() - first,
                                 kMostUsesOfAnOp));
  op.first_use = static_cast<std::uint32_t>(first);
  op.use_count = static_cast<std::uint32_t>(uses_.size() - first);
  counts_.with_uses += op.use_count > 0;
}

}  // namespace

DataflowCounts join_dataflow(ImportedTrace& imported, const TimedCapture& capture, const ExecutionTrace& execution,
                             const OperatorMatch& match, const StorageJoin& storages,
                             std::vector<std::uint32_t>& node_of_op) {
  return Flow(imported, capture, execution, match, storages, node_of_op).run();
}

}  // namespace memwall
