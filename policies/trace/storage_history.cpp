#include "policies/trace/storage_history.h"

namespace memwall {
namespace {

void touch(StorageHistory& history, OpId op, Access access) {
  if (history.touches.empty() || history.touches.back().op != op) history.touches.push_back({op, false, false});
  (access == Access::read ? history.touches.back().reads : history.touches.back().writes) = true;
}

RunKind run_kind(Phase phase) {
  if (phase == Phase::forward) return RunKind::forward;
  return phase == Phase::optimizer ? RunKind::optimizer : RunKind::backward;
}

}  // namespace

std::vector<StorageHistory> storage_histories(const Trace& trace) {
  std::vector<StorageHistory> all(trace.storages.size());
  for (OpId id = 0; id < trace.ops.size(); ++id) {
    const Op& op = trace.ops[id];
    if (op.kind == OpKind::alloc) all[op.target].alloc = id;
    if (op.kind == OpKind::free) all[op.target].free = id;
    for (const Use& use : trace.uses_of(op)) touch(all[use.storage], id, use.access);
  }
  return all;
}

PhaseRuns phase_runs(const Trace& trace) {
  PhaseRuns result;
  result.run_of.resize(trace.ops.size(), 0);
  bool known = false;
  for (OpId id = 0; id < trace.ops.size(); ++id) {
    const Phase phase = trace.ops[id].phase;
    if (result.runs.empty()) result.runs.push_back({RunKind::forward, 0, 0});
    if (phase != Phase::unknown) {
      const RunKind kind = run_kind(phase);
      if (known && kind != result.runs.back().kind) result.runs.push_back({kind, id, id});
      result.runs.back().kind = kind;  // what stands before the first known phase belongs to it
      known = true;
    }
    result.runs.back().last = id;
    result.run_of[id] = static_cast<std::uint32_t>(result.runs.size() - 1);
  }
  return result;
}

}  // namespace memwall
