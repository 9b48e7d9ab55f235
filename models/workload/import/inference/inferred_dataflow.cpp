#include "models/workload/import/inference/inferred_dataflow.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <span>
#include <utility>

#include "models/workload/import/execution_trace/autograd_nodes.h"
#include "models/workload/import/execution_trace/derived_dataflow.h"
#include "models/workload/import/execution_trace/execution_trace.h"
#include "models/workload/import/execution_trace/storage_join.h"
#include "models/workload/import/execution_trace/storage_kinds.h"
#include "models/workload/import/execution_trace/stream_waits.h"
#include "models/workload/import/inference/inference_notes.h"
#include "models/workload/import/inference/older_storages.h"
#include "models/workload/import/inference/operator_rules.h"
#include "models/workload/import/inference/supposed_allocations.h"
#include "sim/human_text.h"
#include "sim/trace/trace_check.h"

namespace memwall {
namespace {

// The inference as an ExecutionTrace would say it: a node per operator, with equal numbers.
class AsExecution {
 public:
  AsExecution(Trace& trace, const TimedCapture& capture, TensorInference& inference)
      : trace_(trace), c_(capture), inference_(inference) {}

  ExecutionTrace execution;
  StorageJoin join;

  void run() {
    add_older();
    for (std::uint32_t k = 0; k < c_.operators.size(); ++k) add_node(k);
    join.node_of_storage.assign(trace_.storages.size(), kNoIndex);
    join.tensor_of_storage.assign(trace_.storages.size(), kNoIndex);
    for (std::size_t i = 0; i < join.storage_of_tensor.size(); ++i) {
      std::uint32_t& first = join.tensor_of_storage[join.storage_of_tensor[i]];
      if (first == kNoIndex || execution.tensors[i].bytes() > execution.tensors[first].bytes())
        first = static_cast<std::uint32_t>(i);
    }
    for (const KnownStorage& s : inference_.table.storages)
      if (!s.older && s.id != kNoStorage && join.tensor_of_storage[s.id] != kNoIndex)
        join.node_of_storage[s.id] = s.maker;
  }

 private:
  void add_older() {
    const std::uint8_t hbm = trace_.place("hbm");
    for (KnownStorage& s : inference_.table.storages) {
      if (!s.older) continue;
      ++join.preexisting;
      join.preexisting_bytes += s.bytes;
      if (s.id != kNoStorage) continue;
      s.id = static_cast<StorageId>(trace_.storages.size());
      Storage storage;
      storage.bytes = s.bytes;
      storage.place = hbm;
      storage.preexisting = true;
      trace_.storages.push_back(storage);
      trace_.untracked_bytes -= std::min(s.bytes, trace_.untracked_bytes);
    }
  }

  void add_node(std::uint32_t k) {
    const CapturedOperator& op = c_.operators[k];
    ExecutionNode node;
    node.id = std::int64_t{k} + 1;
    node.parent = op.parent == kNoIndex ? 0 : std::int64_t{op.parent} + 1;
    node.thread = op.thread;
    node.sequence_number = op.sequence_number;
    node.name = execution.strings.intern(c_.text(op.name));
    const std::string schema = schema_of(k);
    node.schema = schema.empty() ? 0 : execution.strings.intern(schema);
    node.first_input = static_cast<std::uint32_t>(execution.tensors.size());
    for (const InferredTensor& t : inference_.calls[k].inputs) add_tensor(t);
    node.first_output = static_cast<std::uint32_t>(execution.tensors.size());
    node.input_count = node.first_output - node.first_input;
    for (const InferredTensor& t : inference_.calls[k].outputs) add_tensor(t);
    node.output_count = static_cast<std::uint32_t>(execution.tensors.size()) - node.first_output;
    execution.nodes.push_back(node);
  }

  // Variants "out" write their last argument.
  std::string schema_of(std::uint32_t k) const {
    const int out = inference_.calls[k].out_argument;
    if (out < 0) return std::string(known_schema(c_.text(c_.operators[k].name)));
    std::string text = "f(";
    for (int i = 0; i < out; ++i) text += fmt::format("Tensor a{}, ", i);
    return text + "Tensor(a!) out)";
  }

  void add_tensor(const InferredTensor& t) {
    const KnownTensor& known = inference_.table.tensors[t.tensor];
    const KnownStorage& storage = inference_.table.storages[known.storage];
    if (storage.id == kNoStorage) return;
    TensorUse use;
    use.tensor = t.tensor + 1;
    use.storage = std::int64_t{storage.id} + 1;
    use.on_device = true;
    use.argument = t.argument;
    use.elements = static_cast<std::int64_t>(element_count(t.as.shape));
    use.element_bytes = static_cast<std::uint32_t>(t.as.element_bytes);
    use.first_dimension = static_cast<std::uint32_t>(execution.dimensions.size());
    use.dimensions = static_cast<std::uint16_t>(t.as.shape.size());
    execution.dimensions.insert(execution.dimensions.end(), t.as.shape.begin(), t.as.shape.end());
    execution.tensors.push_back(use);
    join.storage_of_tensor.push_back(storage.id);
  }

  Trace& trace_;
  const TimedCapture& c_;
  TensorInference& inference_;
};

OperatorMatch identity_match(const TimedCapture& capture) {
  OperatorMatch match;
  match.node_of_operator.resize(capture.operators.size());
  std::iota(match.node_of_operator.begin(), match.node_of_operator.end(), 0U);
  match.operator_of_node = match.node_of_operator;
  match.nodes = match.matched = capture.operators.size();
  return match;
}

// Storages that are alive, as the trace has them, against what the file says was allocated.
void check_totals(const ImportedTrace& imported, const TimedCapture& capture, InferredDataflow& result) {
  const Trace& trace = imported.trace;
  Bytes total = trace.untracked_bytes;
  for (const Storage& s : trace.storages) total += s.preexisting ? rounded_size(s.bytes) : 0;
  for (OpId id = 0; id < imported.memory_of_op.size(); ++id) {
    const std::uint32_t memory = imported.memory_of_op[id];
    if (memory == kNoIndex || capture.memory[memory].total_allocated < 0) continue;
    const Bytes bytes = rounded_size(trace.storages[trace.ops[id].target].bytes);
    total += trace.ops[id].kind == OpKind::alloc ? bytes : -bytes;
    ++result.totals;
    result.wrong_totals += total != capture.memory[memory].total_allocated;
  }
}

// Kernels on lists whose sizes the file does not list had no bytes: they read and write their storages once.
void add_bytes(Trace& trace, const std::vector<std::uint32_t>& node_of_op, const TensorInference& inference) {
  for (OpId id = 0; id < trace.ops.size(); ++id) {
    Op& op = trace.ops[id];
    const std::uint32_t node = node_of_op[id];
    if (op.kind != OpKind::kernel || op.bytes > 0 || node == kNoIndex || !inference.calls[node].of_lists) continue;
    for (const Use& use : trace.uses_of(op)) op.bytes += trace.storages[use.storage].bytes;
  }
}

bool lists_shapes(const TimedCapture& capture) {
  return std::any_of(capture.operators.begin(), capture.operators.end(),
                     [](const CapturedOperator& op) { return op.input_dims != 0; });
}

template <typename Predicate>
bool any_on_device(const TimedCapture& capture, Predicate holds) {
  return std::any_of(capture.memory.begin(), capture.memory.end(),
                     [&](const CapturedMemory& m) { return m.on_device() && holds(m); });
}

bool knows_memory(const TimedCapture& capture) {
  return any_on_device(capture, [](const CapturedMemory&) { return true; });
}

// What the file would have to hold, as a sentence; "" where it holds all.
std::string missing_in(const TimedCapture& capture) {
  const bool shapes = lists_shapes(capture);
  const bool memory = knows_memory(capture);
  std::string what;
  if (!shapes && !memory)
    what = "the file has neither shapes nor memory events (record with record_shapes=True and profile_memory=True)";
  else if (!shapes)
    what = "the file has memory events, and no shapes (record with record_shapes=True, too)";
  else if (memory &&
           any_on_device(capture, [](const CapturedMemory& m) { return !m.has_address || m.total_allocated < 0; }))
    what =
        "its memory events have no addresses or no running totals, so that nobody can say which storage is given back "
        "(record with PyTorch 1.13 or newer)";
  return what.empty() ? "" : fmt::format("{}{}.", kNotInferred, what);
}

bool contradicts_totals(const InferredDataflow& r) {
  return static_cast<double>(r.wrong_totals) > (1 - kLeastInferred) * static_cast<double>(r.totals);
}

// The trace without what the inference added, for where it is given up.
struct Before {
  explicit Before(const Trace& t)
      : storages(t.storages), untracked_bytes(t.untracked_bytes), places(t.places), strings(t.strings) {}
  void restore(Trace& t) && {
    t.storages = std::move(storages);
    t.untracked_bytes = untracked_bytes;
    t.places = std::move(places);
    t.strings = std::move(strings);
    t.uses.clear();
    for (Op& op : t.ops) op.first_use = op.use_count = 0;
  }
  std::vector<Storage> storages;
  Bytes untracked_bytes;
  std::vector<std::string> places;
  StringTable strings;
};

// Storages and uses of the same program, which has allocations besides: device ops have equal numbers in the capture.
void move_uses(const ImportedTrace& from, ImportedTrace& to) {
  Trace& trace = to.trace;
  trace.storages = from.trace.storages;
  for (Storage& storage : trace.storages) {
    storage.label = trace.strings.intern(from.trace.strings[storage.label]);
    storage.shape = trace.shapes.intern(from.trace.shapes[storage.shape]);
    storage.place = trace.place(from.trace.places[storage.place]);
  }
  trace.untracked_bytes = from.trace.untracked_bytes;
  std::map<std::uint32_t, OpId> op_of_work;
  for (OpId id = 0; id < from.device_of_op.size(); ++id)
    if (from.device_of_op[id] != kNoIndex) op_of_work.emplace(from.device_of_op[id], id);
  for (OpId id = 0; id < to.device_of_op.size(); ++id) {
    const auto same = op_of_work.find(to.device_of_op[id]);
    if (same == op_of_work.end()) continue;
    const std::span<const Use> uses = from.trace.uses_of(from.trace.ops[same->second]);
    trace.ops[id].first_use = static_cast<std::uint32_t>(trace.uses.size());
    trace.ops[id].use_count = static_cast<std::uint32_t>(uses.size());
    trace.uses.insert(trace.uses.end(), uses.begin(), uses.end());
  }
}

std::size_t device_work(const Trace& trace) {
  return static_cast<std::size_t>(
      std::ranges::count_if(trace.ops, [](const Op& op) { return runs_on_device(op.kind); }));
}

// What the inference concluded of a program, for whoever goes on with it.
struct Concluded {
  const ExecutionTrace& execution;
  const OperatorMatch& match;
  const StorageJoin& join;
  const std::vector<std::uint32_t>& node_of_op;
  const TensorInference& inference;
};

// Uses, kinds and labels of the trace; where they do not hold, `result.missing` says why, and the trace is as before.
template <typename Then>
void conclude(ImportedTrace& imported, const TimedCapture& capture, InferredDataflow& result, Then then) {
  Trace& trace = imported.trace;
  Before before(trace);
  const Bytes at_start = bytes_at_start(trace, capture);
  TensorInference inference = infer_tensors(imported, capture);
  AsExecution as(trace, capture, inference);
  as.run();
  const OperatorMatch match = identity_match(capture);
  std::vector<std::uint32_t> node_of_op;
  result.inputs = inference.counts;
  result.flow = join_dataflow(imported, capture, as.execution, match, as.join, node_of_op);
  for (const std::uint32_t node : node_of_op) result.whole += node != kNoIndex && inference.whole[node];
  check_totals(imported, capture, result);
  classify_storages(imported, capture, as.execution, match, as.join);
  for (const std::uint32_t s : inference.parameters)
    if (const StorageId id = inference.table.storages[s].id; id != kNoStorage)
      trace.storages[id].kind = StorageKind::parameter;
  if (result.share() < kLeastInferred)
    result.missing = few_found(result);
  else if (contradicts_totals(result))
    result.missing = fmt::format("{}at {} of {} memory events its storages are not what the file says was allocated.",
                                 kNotInferred, result.wrong_totals, result.totals);
  else if (bytes_at_start(trace, capture) != at_start)
    result.missing = fmt::format(
        "{}what was used and is older than the profile would take more than the {} that were "
        "allocated when it began.",
        kNotInferred, human_bytes(at_start));
  if (result.missing.empty())
    then(Concluded{as.execution, match, as.join, node_of_op, inference});
  else
    std::move(before).restore(trace);
}

void infer_with_memory(ImportedTrace& imported, const TimedCapture& capture, InferredDataflow& result) {
  if (!imported.trace.knowledge.allocations) return;
  conclude(imported, capture, result, [&](const Concluded& found) {
    add_bytes(imported.trace, found.node_of_op, found.inference);
    result.saved = mark_saved_tensors(imported.trace, autograd_nodes(imported, capture));
  });
}

// Its results are known by rules, and lives by uses: peaks are lower bounds.
void infer_from_shapes(ImportedTrace& imported, const TimedCapture& capture, InferredDataflow& result) {
  const SupposedAllocations supposed = suppose_allocations(imported, capture);
  result.supposed = supposed.results;
  if (supposed.told_share() < kLeastInferred) {
    result.missing = few_told(supposed);
    return;
  }
  ImportedTrace with = import_timed_capture(supposed.capture);
  with.trace.knowledge.allocations = false;  // of frees nothing is supposed
  conclude(with, supposed.capture, result, [&](const Concluded& found) {
    move_uses(with, imported);
    add_bytes(imported.trace, imported.operator_of_op, found.inference);
    result.saved = mark_saved_tensors(imported.trace, autograd_nodes(imported, capture));
    result.lives =
        derive_lifetimes(imported, capture, found.execution, found.match, found.join, waits_of(imported.trace));
  });
}

}  // namespace

bool can_infer_dataflow(const TimedCapture& capture) {
  return capture.device_ops.size() <= kMostInferred && missing_in(capture).empty();
}

InferredDataflow infer_dataflow(ImportedTrace& imported, const TimedCapture& capture) {
  InferredDataflow result;
  Trace& trace = imported.trace;
  const std::size_t work = device_work(trace);
  result.missing = work > kMostInferred ? too_large(work) : missing_in(capture);
  if (result.missing.empty() && knows_memory(capture))
    infer_with_memory(imported, capture, result);
  else if (result.missing.empty())
    infer_from_shapes(imported, capture, result);
  trace.knowledge.dataflow = result.missing.empty() && trace.knowledge.allocations;
  trace.notes.push_back(trace.knowledge.dataflow ? basis(result) : result.missing);
  imported.note_kinds.insert_or_assign(trace.notes.back(),
                                       trace.knowledge.dataflow ? NoteKind::assumed : NoteKind::missing);
  if (trace.knowledge.dataflow) require_sound(trace, capture.path.string());
  return result;
}

}  // namespace memwall
