#include "models/workload/import/inference/profile_facts.h"

#include <algorithm>
#include <string_view>

#include "models/workload/import/inference/operator_rules.h"

namespace memwall {
namespace {

using std::string_view;

// "ReluBackward0", "CudnnConvolutionBackward"; operators are called "aten::threshold_backward".
bool names_a_function(string_view name) {
  if (name.find(':') != string_view::npos) return false;
  while (!name.empty() && name.back() >= '0' && name.back() <= '9') name.remove_suffix(1);
  return name.ends_with("Backward");
}

FrameKind kind_of(const CapturedOperator& op, string_view name) {
  if (op.annotation || name.starts_with("Optimizer.") || name.starts_with("ProfilerStep")) return FrameKind::range;
  if (name.starts_with("autograd::engine::evaluate_function")) return FrameKind::engine;
  if (name == "torch::autograd::AccumulateGrad") return FrameKind::accumulate;
  return names_a_function(name) ? FrameKind::function : FrameKind::operation;
}

}  // namespace

ProfileFacts::ProfileFacts(const ImportedTrace& imported, const TimedCapture& capture)
    : imported_(imported), c_(capture) {
  find_kinds();
  find_functions();
  find_device_work();
  find_memory();
  find_accumulations();
}

void ProfileFacts::find_kinds() {
  const std::size_t n = c_.operators.size();
  kinds_.resize(n);
  backward_.assign(n, false);
  optimizer_.assign(n, false);
  zero_grad_.assign(n, false);
  for (std::size_t k = 0; k < n; ++k) {
    const CapturedOperator& op = c_.operators[k];
    const string_view name = c_.text(op.name);
    kinds_[k] = kind_of(op, name);
    const bool above = op.parent != kNoIndex;
    backward_[k] =
        (kinds_[k] != FrameKind::operation && kinds_[k] != FrameKind::range) || (above && backward_[op.parent]);
    zero_grad_[k] = name.starts_with("Optimizer.zero_grad") || (above && zero_grad_[op.parent]);
    optimizer_[k] = name.starts_with("Optimizer.step") || (above && optimizer_[op.parent]);
  }
}

// What stands on the engine's thread between functions sums and adds gradients (2021: no entries of the engine).
void ProfileFacts::find_functions() {
  const std::size_t n = c_.operators.size();
  backward_threads_.assign(c_.threads.size(), false);
  next_function_.assign(n, kNever);
  std::vector<std::uint32_t> last(c_.threads.size(), kNoIndex);
  for (std::uint32_t k = 0; k < n; ++k) {
    const CapturedOperator& op = c_.operators[k];
    const bool entered = op.parent != kNoIndex && kinds_[op.parent] == FrameKind::engine;
    if (kinds_[k] == FrameKind::function && !entered && op.forward_thread > 0) backward_threads_[op.thread] = true;
    if (kinds_[k] != FrameKind::function && kinds_[k] != FrameKind::accumulate) continue;
    if (last[op.thread] != kNoIndex) next_function_[last[op.thread]] = op.start;
    last[op.thread] = k;
  }
  for (std::size_t k = 0; k < n; ++k)
    if (backward_threads_[c_.operators[k].thread] && c_.operators[k].parent == kNoIndex) backward_[k] = true;
  for (std::size_t k = 0; k < n; ++k)
    if (c_.operators[k].parent != kNoIndex && backward_[c_.operators[k].parent]) backward_[k] = true;
}

Time ProfileFacts::function_end(std::uint32_t op) const {
  const std::uint32_t around = c_.operators[op].parent;
  if (around != kNoIndex && kinds_[around] == FrameKind::engine) return c_.operators[around].end();
  return next_function_[op] == kNever ? c_.operators[op].end() : next_function_[op];
}

int ProfileFacts::out_argument(std::uint32_t op) const {
  const std::uint32_t around = c_.operators[op].parent;
  if (around == kNoIndex) return -1;
  string_view name = c_.text(c_.operators[op].name), outer = c_.text(c_.operators[around].name);
  if (outer.ends_with('_') && !name.ends_with('_')) outer.remove_suffix(1);
  if (name != outer || arguments(op).size() <= arguments(around).size()) return -1;
  const std::vector<RecordedArgument>& list = arguments(op);
  return list.back().tensors.empty() ? -1 : static_cast<int>(list.size()) - 1;
}

void ProfileFacts::mark_up(std::uint32_t op) {
  for (std::uint32_t k = op; k != kNoIndex && !on_device_[k]; k = c_.operators[k].parent) on_device_[k] = true;
}

void ProfileFacts::find_device_work() {
  const std::size_t n = c_.operators.size();
  on_device_.assign(n, false);
  launched_.assign(n, 0);
  std::vector<std::uint32_t> in(n, 0), out(n, 0), other(n, 0);  // copies from and to the host; the rest
  const Trace& trace = imported_.trace;
  for (OpId id = 0; id < trace.ops.size(); ++id) {
    const Op& op = trace.ops[id];
    const std::uint32_t k = imported_.operator_of_op[id];
    if (k == kNoIndex || !runs_on_device(op.kind) || op.placed) continue;
    mark_up(k);
    ++launched_[k];
    const auto host = [&](std::uint8_t place) { return place < trace.places.size() && trace.places[place] == "host"; };
    auto& count = op.kind == OpKind::copy && host(op.from) ? in : op.kind == OpKind::copy && host(op.to) ? out : other;
    for (std::uint32_t a = k; a != kNoIndex; a = c_.operators[a].parent) ++count[a];
  }
  from_host_.resize(n);
  to_host_.resize(n);
  for (std::size_t k = 0; k < n; ++k) {
    from_host_[k] = in[k] == 1 && out[k] + other[k] == 0;
    to_host_[k] = out[k] == 1 && in[k] + other[k] == 0;
  }
}

void ProfileFacts::find_memory() {
  storage_of_memory_.assign(c_.memory.size(), kNoStorage);
  operator_of_memory_.assign(c_.memory.size(), kNoIndex);
  freed_.assign(imported_.trace.storages.size(), kNever);
  for (OpId id = 0; id < imported_.memory_of_op.size(); ++id) {
    const std::uint32_t memory = imported_.memory_of_op[id];
    if (memory == kNoIndex) continue;
    storage_of_memory_[memory] = imported_.trace.ops[id].target;
    operator_of_memory_[memory] = imported_.operator_of_op[id];
    if (c_.memory[memory].bytes < 0) freed_[imported_.trace.ops[id].target] = c_.memory[memory].time;
    if (c_.memory[memory].bytes > 0 && imported_.operator_of_op[id] != kNoIndex) mark_up(imported_.operator_of_op[id]);
  }
}

// The engine adds a gradient to one that waits for the same function, inside the entry of the function that made it
// (torch/csrc/autograd/input_buffer.cpp).
void ProfileFacts::find_accumulations() {
  std::vector<std::int64_t> last(c_.threads.size(), -1);  // the sequence number of the thread's last function
  for (std::size_t k = 0; k < c_.operators.size(); ++k) {
    const CapturedOperator& op = c_.operators[k];
    const string_view name = c_.text(op.name);
    const bool adds = name == "aten::add" || name == "aten::add_";
    if (kinds_[k] == FrameKind::function && op.sequence_number >= 0) {
      accumulates_.try_emplace(op.sequence_number, false);
      last[op.thread] = op.sequence_number;
    }
    if (adds && op.parent == kNoIndex && backward_[k] && last[op.thread] >= 0) accumulates_[last[op.thread]] = true;
    if (kinds_[k] == FrameKind::engine && op.sequence_number >= 0) accumulates_.try_emplace(op.sequence_number, false);
    if (op.parent == kNoIndex || kinds_[op.parent] != FrameKind::engine) continue;
    if (adds) accumulates_[c_.operators[op.parent].sequence_number] = true;
  }
}

bool ProfileFacts::accumulates(std::int64_t sequence) const {
  const auto found = accumulates_.find(sequence);
  return found != accumulates_.end() && found->second;
}

bool ProfileFacts::may_have_second_reader(std::int64_t sequence) const {
  const auto found = accumulates_.find(sequence);
  return found == accumulates_.end() || found->second;
}

const std::vector<RecordedArgument>& ProfileFacts::arguments(std::uint32_t op) const {
  const CapturedOperator& o = c_.operators[op];
  const auto [found, is_new] = arguments_.try_emplace(Texts{o.input_dims, o.input_types, o.concrete_inputs});
  if (is_new && o.input_dims != 0)
    found->second = recorded_arguments(c_.text(o.input_dims), c_.text(o.input_types), c_.text(o.concrete_inputs));
  return found->second;
}

}  // namespace memwall
