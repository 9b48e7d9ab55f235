#include "models/workload/import/execution_trace/execution_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <unordered_map>
#include <unordered_set>

#include "models/workload/import/execution_trace/communication_node.h"
#include "models/workload/import/execution_trace/derived_dataflow.h"
#include "models/workload/import/execution_trace/device_work_of_nodes.h"
#include "models/workload/import/execution_trace/execution_notes.h"
#include "models/workload/import/timed/capture_phases.h"
#include "models/workload/import/timed/kernel_properties.h"
#include "models/workload/import/timed/module_paths.h"
#include "models/workload/operator_class.h"
#include "sim/error.h"
#include "sim/trace/step_count.h"
#include "sim/trace/trace_check.h"

namespace memwall {
namespace {

class StepWriter {
 public:
  explicit StepWriter(ExecutionTrace execution) : execution_(std::move(execution)) {
    mark_compiled_outputs(execution_);
    order_ = order_of(execution_);
    works_ = device_work_of_nodes(execution_, order_);
    capture_ = logical_clock_capture(execution_, order_);
  }

  ImportedStep run() &&;

 private:
  struct Pending {  // a collective that nobody has waited for yet
    OpId op = kNoOp;
    std::uint32_t event = 0;
    std::uint16_t stream = 0, compute = 0;
  };

  void prepare();
  void write_ops();
  void begin_steps(std::uint32_t node);
  void issue(std::uint32_t node);
  void hand_over_to(std::uint16_t thread);
  Op op_of(std::uint32_t node, OpKind kind);
  OpId append(Op op, std::uint32_t node);
  void issue_kernel(std::uint32_t node);
  void issue_copy(std::uint32_t node);
  void issue_collective(std::uint32_t node);
  void wait_for(std::size_t pending, std::uint16_t stream, std::uint32_t node);
  void wait_for_users(std::uint32_t node, std::uint16_t stream);
  void wait_by_record(std::uint32_t node);
  std::uint16_t compute_stream(const ExecutionNode& node) const;
  std::uint16_t group_of(const CommunicationNode& c);

  Trace& trace() { return imported_.trace; }

  ExecutionTrace execution_;
  ExecutionOrder order_;
  NodeDeviceWorks works_;
  TimedCapture capture_;
  ImportedTrace imported_;
  std::unique_ptr<CapturePhases> phases_;
  ModulePaths modules_;
  std::size_t next_step_ = 0;
  std::vector<std::uint32_t> calls_;  // by thread: dispatched since its last op
  int thread_ = -1;                   // that issued last
  std::map<std::int16_t, std::uint16_t> stream_of_device_;
  std::map<std::pair<std::uint16_t, std::uint16_t>, std::uint16_t> stream_of_group_;  // by compute stream and group
  std::map<std::string, std::uint16_t> groups_;
  std::vector<Pending> pending_;
  std::unordered_map<std::int64_t, std::size_t> pending_of_number_, pending_of_storage_;  // looked up only
  std::unordered_set<std::int64_t> pinned_;                                               // host storages, by id
  DataflowSettings settings_;
  ExecutionCounts counts_;
  std::int64_t rank_ = -1;
};

void StepWriter::prepare() {
  Trace& t = trace();
  t.name = execution_.path.filename().string();
  t.place("hbm");
  for (const CapturedThread& thread : capture_.threads) t.threads.push_back({fmt::format("thread {}", thread.id), 0});
  for (const std::int16_t device : works_.devices) {
    const std::size_t index = t.streams.size();  // devices are counted from 0 in the trace
    stream_of_device_[device] = static_cast<std::uint16_t>(index);
    t.streams.push_back({fmt::format("cuda:{}", device), static_cast<std::uint16_t>(index), StreamRole::compute, 0});
  }
  if (t.streams.empty())
    throw InputError(fmt::format("{}: none of its {} nodes has a tensor on a GPU; expected a step that runs on one.",
                                 execution_.path.string(), execution_.nodes.size()));
  t.groups = listed_groups(execution_);
  for (std::size_t g = 0; g < t.groups.size(); ++g) groups_.emplace(t.groups[g].name, static_cast<std::uint16_t>(g));
  calls_.assign(capture_.threads.size(), 0);
  phases_ = std::make_unique<CapturePhases>(capture_);
  modules_ = find_modules(capture_);
}

ImportedStep StepWriter::run() && {
  prepare();
  write_ops();
  Trace& t = trace();
  if (counts_.kernels + counts_.copies + counts_.collectives == 0)
    throw InputError(fmt::format("{}: none of its {} nodes runs anything on a GPU; expected a step that does.",
                                 execution_.path.string(), execution_.nodes.size()));
  const DerivedDataflow derived = add_dataflow(imported_, capture_, execution_, settings_);
  for (std::size_t s = 0; s < t.storages.size(); ++s)
    if (const std::uint32_t tensor = derived.storages.tensor_of_storage[s]; tensor != kNoIndex)
      t.storages[s].stream = stream_of_device_.at(execution_.tensors[tensor].device);
  for (Op& op : t.ops)
    if (op.kind == OpKind::alloc || op.kind == OpKind::free) op.stream = t.storages[op.target].stream;
  t.knowledge.modules = !modules_.paths.empty();
  require_sound(t, execution_.path.string());
  ImportedStep step;
  const bool has_backward =
      std::any_of(t.ops.begin(), t.ops.end(), [](const Op& op) { return op.phase == Phase::backward; });
  describe_execution({.execution = execution_,
                      .works = works_,
                      .derived = derived,
                      .counts = counts_,
                      .threads = capture_.threads.size(),
                      .rank = rank_,
                      .job_ranks = t.job_ranks,
                      .names_steps = !phases_->steps().empty(),
                      .has_backward = has_backward},
                     step);
  step.trace = std::move(t);
  step.files.push_back(execution_.path);
  return step;
}

void StepWriter::write_ops() {
  for (const std::uint32_t node : order_.ends) {
    begin_steps(node);
    const ExecutionNode& n = execution_.nodes[node];
    const std::string& name = execution_.name(n);
    if (works_.dispatched[node]) ++calls_[capture_.operators[node].thread];
    if (name == "aten::pin_memory" || name == "aten::_pin_memory")
      for (const TensorUse& t : execution_.outputs(n)) pinned_.insert(t.storage);
    if (works_.work[node] != NodeDeviceWork::none)
      issue(node);
    else if (name == "record_param_comms")
      wait_by_record(node);
  }
  Trace& t = trace();
  if (t.steps.empty()) t.steps.push_back({"step", 0, 0});
  for (std::size_t s = 0; s < t.steps.size(); ++s)
    t.steps[s].last = s + 1 < t.steps.size() ? t.steps[s + 1].first : static_cast<OpId>(t.ops.size());
  leave_out_idle_steps(t);
}

// A step begins with a mark before the first work issued in its range; without ranges all is one step.
void StepWriter::begin_steps(std::uint32_t node) {
  const std::vector<StepMarker>& steps = phases_->steps();
  const bool first_of_all = steps.empty() && trace().ops.empty();
  const bool begins = next_step_ < steps.size() && capture_.operators[node].start >= steps[next_step_].start;
  if (!first_of_all && !begins) return;
  while (begins && next_step_ + 1 < steps.size() && capture_.operators[node].start >= steps[next_step_ + 1].start)
    ++next_step_;  // an empty step is none
  const std::string name = begins ? steps[next_step_].name : "step";
  if (begins) ++next_step_;
  Op mark;
  mark.kind = OpKind::mark;
  mark.origin = Origin::modelled;
  mark.thread = capture_.operators[node].thread;
  mark.name = trace().strings.intern(name);
  hand_over_to(mark.thread);
  trace().steps.push_back({name, static_cast<OpId>(trace().ops.size()), 0});
  append(mark, kNoIndex);
}

OpId StepWriter::append(Op op, std::uint32_t node) {
  trace().ops.push_back(op);
  imported_.operator_of_op.push_back(node);
  thread_ = op.thread;
  return static_cast<OpId>(trace().ops.size() - 1);
}

// The threads of a training program take turns (autograd's thread works while the program's waits in backward()).
void StepWriter::hand_over_to(std::uint16_t thread) {
  if (thread_ < 0 || thread_ == thread) return;
  Op op;
  op.kind = OpKind::hand_over;
  op.origin = Origin::modelled;
  op.inferred = true;
  op.thread = thread;
  op.target = static_cast<OpId>(trace().ops.size() - 1);
  append(op, kNoIndex);
  ++counts_.hand_overs;
}

std::uint16_t StepWriter::compute_stream(const ExecutionNode& node) const {
  for (const auto& tensors : {execution_.outputs(node), execution_.inputs(node)})
    for (const TensorUse& t : tensors)
      if (t.on_device && t.defined() && t.bytes() > 0) return stream_of_device_.at(t.device);
  return 0;
}

Op StepWriter::op_of(std::uint32_t node, OpKind kind) {
  const CapturedOperator& k = capture_.operators[node];
  Op op;
  op.kind = kind;
  op.origin = Origin::modelled;
  op.thread = k.thread;
  op.stream = compute_stream(execution_.nodes[node]);
  op.phase = phases_->phase(k.thread, logical_issue_time(order_, node), node);
  op.name = op.operator_name = trace().strings.intern(execution_.name(execution_.nodes[node]));
  if (modules_.of_operator[node] != kNoIndex)
    op.module = trace().strings.intern(modules_.paths[modules_.of_operator[node]]);
  op.dispatch = Dispatch::eager;
  return op;
}

void StepWriter::issue(std::uint32_t node) {
  hand_over_to(capture_.operators[node].thread);
  const std::uint16_t stream = compute_stream(execution_.nodes[node]);
  if (works_.work[node] == NodeDeviceWork::collective) return issue_collective(node);
  wait_for_users(node, stream);
  if (works_.work[node] == NodeDeviceWork::kernel) return issue_kernel(node);
  issue_copy(node);
}

void StepWriter::issue_kernel(std::uint32_t node) {
  Op op = op_of(node, OpKind::kernel);
  const bool compiled = execution_.nodes[node].kernel_backend != 0;
  const std::string& name = trace().strings[op.name];
  op.operator_class = compiled ? operator_class("", name) : operator_class(name, "");
  op.dispatch = compiled ? Dispatch::compiled : Dispatch::eager;
  std::uint32_t& calls = calls_[op.thread];
  if (!compiled) op.framework_calls = static_cast<std::uint16_t>(std::min<std::uint32_t>(calls, 0xffff));
  calls = 0;
  append(op, node);
  ++counts_.kernels;
}

void StepWriter::issue_copy(std::uint32_t node) {
  const ExecutionNode& n = execution_.nodes[node];
  const NodeDeviceWork work = works_.work[node];
  Op op = op_of(node, OpKind::copy);
  op.from = trace().place(work == NodeDeviceWork::copy_to_device ? "host" : "hbm");
  op.to = trace().place(work == NodeDeviceWork::copy_to_host           ? "host"
                        : work == NodeDeviceWork::copy_between_devices ? "peer_hbm"
                                                                 : "hbm");
  op.operator_class = OperatorClass::memory;
  const bool reads_number = execution_.name(n) == "aten::_local_scalar_dense";
  bool pinned = false;
  for (const TensorUse& t : execution_.inputs(n)) {
    if (t.argument == 0) op.bytes = t.bytes();
    pinned |= !t.on_device && pinned_.contains(t.storage);
  }
  op.pageable = work != NodeDeviceWork::copy_between_devices && !pinned && !reads_number;
  const bool asynchronous = execution_.value(n, 2) == "true";
  if (reads_number || (!asynchronous && work != NodeDeviceWork::copy_between_devices)) op.wait_for = WaitFor::own_op;
  op.framework_calls = static_cast<std::uint16_t>(std::min<std::uint32_t>(calls_[op.thread], 0xffff));
  calls_[op.thread] = 0;
  append(op, node);
  ++counts_.copies;
}

// By name; members by how they are spaced, where the file says.
std::uint16_t StepWriter::group_of(const CommunicationNode& c) {
  const auto [entry, is_new] = groups_.try_emplace(c.group, static_cast<std::uint16_t>(trace().groups.size()));
  if (is_new) trace().groups.push_back({c.group, 0, {}});
  ProcessGroup& group = trace().groups[entry->second];
  group.ranks = std::max(group.ranks, c.ranks);
  const bool spaced = group.members.empty() && c.step > 0 && c.first_rank >= 0 && c.ranks > 0 &&
                      c.first_rank + c.step * c.ranks < (std::int64_t{1} << 31);
  for (std::uint32_t i = 0; spaced && i < c.ranks; ++i)
    group.members.push_back(static_cast<std::uint32_t>(c.first_rank + i * c.step));
  trace().job_ranks = std::max(trace().job_ranks, group.ranks);
  if (!group.members.empty()) trace().job_ranks = std::max(trace().job_ranks, group.members.back() + 1);
  return entry->second;
}

void StepWriter::issue_collective(std::uint32_t node) {
  const CommunicationNode c = communication_of(execution_, order_, node);
  Op op = op_of(node, OpKind::collective);
  const std::uint16_t compute = op.stream;
  wait_for_users(node, compute);
  op.collective = c.kind;
  op.group = group_of(c);
  const std::uint32_t ranks = trace().groups[op.group].ranks;
  op.bytes = ranks == 1 ? 0 : wire_bytes(c.kind, c.message, ranks);
  counts_.unsized_groups += ranks == 0;
  if (c.rank >= 0) rank_ = c.rank;
  const auto [stream, is_new] =
      stream_of_group_.try_emplace({compute, op.group}, static_cast<std::uint16_t>(trace().streams.size()));
  if (is_new)
    trace().streams.push_back({fmt::format("communication of group '{}'", c.group), trace().streams[compute].device,
                               StreamRole::communication, 0});
  Op edge = op;
  edge.bytes = 0;
  edge.collective = CollectiveKind::none;
  edge.name = 0;
  edge.dispatch = Dispatch::native;
  edge.kind = OpKind::event_record;
  edge.target = trace().event_count++;
  append(edge, kNoIndex);
  edge.kind = OpKind::event_wait;
  edge.stream = stream->second;
  append(edge, kNoIndex);
  op.stream = stream->second;
  op.framework_calls = static_cast<std::uint16_t>(std::min<std::uint32_t>(calls_[op.thread] + 1, 0xffff));
  calls_[op.thread] = 0;
  const OpId id = append(op, node);
  edge.kind = OpKind::event_record;
  edge.target = trace().event_count++;
  append(edge, kNoIndex);
  if (c.number >= 0) pending_of_number_[c.number] = pending_.size();
  // What the range around lists (outputs too) is what others wait for.
  for (std::uint32_t around = node, depth = 0; around != kNoIndex && depth < 3;
       around = order_.parent[around], ++depth) {
    const ExecutionNode& n = execution_.nodes[around];
    for (const auto& tensors : {execution_.inputs(n), execution_.outputs(n)})
      for (const TensorUse& t : tensors)
        if (t.on_device && t.defined()) pending_of_storage_[t.storage] = pending_.size();
    if (execution_.name(n).starts_with("c10d::")) break;
  }
  pending_.push_back({id, edge.target, stream->second, compute});
  ++counts_.collectives;
}

void StepWriter::wait_for(std::size_t pending, std::uint16_t stream, std::uint32_t node) {
  Pending& p = pending_[pending];
  if (p.op == kNoOp) return;  // somebody has
  Op op = op_of(node, OpKind::event_wait);
  op.dispatch = Dispatch::native;
  op.stream = stream;
  op.target = p.event;
  settings_.waited.emplace_back(p.op, append(op, kNoIndex));
  p.op = kNoOp;
}

// The next work of the collective's own stream comes after it anyway; here only others are asked for.
void StepWriter::wait_for_users(std::uint32_t node, std::uint16_t stream) {
  if (pending_of_storage_.empty()) return;
  const ExecutionNode& n = execution_.nodes[node];
  for (const auto& tensors : {execution_.inputs(n), execution_.outputs(n)})
    for (const TensorUse& t : tensors) {
      const auto found = pending_of_storage_.find(t.storage);
      if (found == pending_of_storage_.end() || !t.on_device) continue;
      const std::size_t pending = found->second;
      pending_of_storage_.erase(found);
      counts_.waits_inferred += pending_[pending].op != kNoOp;
      wait_for(pending, stream, node);
    }
}

void StepWriter::wait_by_record(std::uint32_t node) {
  const auto record = communication_record(execution_, node);
  if (!record || record->name != "wait" || record->number < 0) return;
  const auto found = pending_of_number_.find(record->number);
  if (found == pending_of_number_.end()) return;  // of before the window
  const std::size_t pending = found->second;
  if (pending_[pending].op == kNoOp) return;
  hand_over_to(capture_.operators[node].thread);
  wait_for(pending, pending_[pending].compute, node);
  ++counts_.waits_stated;
}

}  // namespace

ImportedStep step_of(ExecutionTrace execution) {
  ImportedStep step = StepWriter(std::move(execution)).run();
  for (const Decision& decision : step.decisions) step.trace.notes.push_back(decision.sentence);
  return step;
}

bool recognizes_execution_trace(const FileHead& head) {
  const auto has = [&](std::string_view name) {
    return std::find(head.members.begin(), head.members.end(), name) != head.members.end();
  };
  return has("nodes") && has("schema") && !has("traceEvents");
}

ImportedStep import_execution_trace(const std::filesystem::path& path, const ImportSettings&) {
  return step_of(read_execution_trace(path));
}

}  // namespace memwall
