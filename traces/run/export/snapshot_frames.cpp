#include "traces/run/export/snapshot_frames.h"

#include <string>

namespace memwall {
namespace {

constexpr std::string_view kNoFile = "??";  // as PyTorch has it for frames of C++

}  // namespace

SnapshotFrames::Source SnapshotFrames::source_of(const MemoryChange& change) const {
  if (change.op != kNoOp) return Source::program;
  if (!change.comes || change.time > Time{} || !run_.trace->storages[change.storage].preexisting) return Source::pager;
  switch (run_.trace->storages[change.storage].kind) {
    case StorageKind::parameter:
      return Source::parameters;
    case StorageKind::optimizer_state:
      return Source::states;
    default:
      return Source::before;
  }
}

void SnapshotFrames::write_none() {
  pickle_.begin_list();
  pickle_.end_list();
}

void SnapshotFrames::write(const MemoryChange& change) {
  Key key{source_of(change), Phase::unknown, false, 0, 0};
  if (change.op != kNoOp) {
    const Trace& trace = run_.trace;
    const Op& op = trace.ops[change.op];
    const Storage& storage = trace.storages[change.storage];
    const StringId name = op.operator_name != 0 ? op.operator_name : op.name;
    key = {Source::program, op.phase, change.comes && storage.kind == StorageKind::gradient,
           name != 0 ? name : storage.label, op.module};
  }
  const auto known = known_.find(key);
  if (known != known_.end()) return pickle_.recall(known->second);
  pickle_.begin_list();
  write_list(key);
  pickle_.end_list();
  known_.emplace(key, pickle_.remember());
}

void SnapshotFrames::write_list(const Key& key) {
  switch (std::get<Source>(key)) {
    case Source::program:
      return write_program(key);
    case Source::parameters:
      return frame("load_state_dict", "<module>");
    case Source::states:
      return frame("load_state_dict", "<optimizer>");
    case Source::before:
      return frame("before the step", "<memwall>");
    case Source::pager:
      return frame("pager", "<memwall>");
  }
}

void SnapshotFrames::write_program(const Key& key) {
  const auto& [source, phase, is_gradient, name, module] = key;
  const StringTable& strings = run_.trace->strings;
  if (name != 0) frame(strings[name], kNoFile);
  const std::string file = "<module " + strings[module] + ">";
  if (phase == Phase::forward || phase == Phase::recompute)
    frame("forward", module != 0 ? file : "<module>");
  else if (module != 0)
    frame(strings[module], "<module>");
  if (phase == Phase::backward || phase == Phase::recompute) {
    if (is_gradient) frame("torch::autograd::AccumulateGrad::apply", kNoFile);
    frame("torch::autograd::Engine::evaluate_function", kNoFile);
  }
  if (phase == Phase::optimizer) frame("step", "<optimizer>");
}

void SnapshotFrames::frame(std::string_view name, std::string_view file) {
  pickle_.begin_dict();
  pickle_.field("name", name);
  pickle_.field("filename", file);
  pickle_.field("line", 0);
  pickle_.end_dict();
}

}  // namespace memwall
