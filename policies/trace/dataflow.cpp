#include "policies/trace/dataflow.h"

#include <algorithm>

namespace memwall {

Dataflow::Dataflow(const Trace& trace)
    : alloc_(trace.storages.size(), kNoOp),
      free_(trace.storages.size(), kNoOp),
      first_touch_(trace.storages.size() + 1, 0),
      first_writer_(trace.storages.size() + 1, 0) {
  for (OpId id = 0; id < trace.ops.size(); ++id) {
    const Op& op = trace.ops[id];
    if (op.kind == OpKind::alloc) alloc_[op.target] = id;
    if (op.kind == OpKind::free) free_[op.target] = id;
    for (const Use& use : trace.uses_of(op)) {
      ++first_touch_[use.storage + 1];
      if (use.access == Access::write) ++first_writer_[use.storage + 1];
    }
  }
  for (std::size_t s = 0; s < trace.storages.size(); ++s) {
    first_touch_[s + 1] += first_touch_[s];
    first_writer_[s + 1] += first_writer_[s];
  }
  touches_.resize(first_touch_.back());
  writers_.resize(first_writer_.back());
  std::vector<std::uint32_t> touch = first_touch_, writer = first_writer_;
  for (OpId id = 0; id < trace.ops.size(); ++id)
    for (const Use& use : trace.uses_of(trace.ops[id])) {
      touches_[touch[use.storage]++] = {id, use.version, use.access};
      if (use.access == Access::write) writers_[writer[use.storage]++] = id;
    }
}

std::span<const Dataflow::Touch> Dataflow::touches(StorageId s) const {
  return {touches_.data() + first_touch_[s], first_touch_[s + 1] - first_touch_[s]};
}

std::span<const OpId> Dataflow::writers(StorageId s) const {
  return {writers_.data() + first_writer_[s], first_writer_[s + 1] - first_writer_[s]};
}

OpId Dataflow::writer(StorageId s, std::uint32_t version) const {
  return version == 0 ? kNoOp : writers(s)[version - 1];
}

std::uint32_t Dataflow::version_before(StorageId s, OpId op) const {
  const std::span<const OpId> all = writers(s);
  return static_cast<std::uint32_t>(std::lower_bound(all.begin(), all.end(), op) - all.begin());
}

std::vector<Pass> passes(const Trace& trace) {
  std::vector<Pass> found;
  Pass pass{kNoOp, kNoOp, kNoOp};
  const auto close = [&](OpId end) {
    pass.end = end;
    if (pass.begin != kNoOp && pass.backward != kNoOp) found.push_back(pass);
  };
  bool forward_ended = false;
  for (OpId id = 0; id < trace.ops.size(); ++id) {
    const Phase phase = trace.ops[id].phase;
    if (phase == Phase::forward && (pass.begin == kNoOp || forward_ended)) {
      close(id);
      pass = {id, kNoOp, kNoOp};
      forward_ended = false;
    }
    if (phase == Phase::backward && pass.backward == kNoOp) pass.backward = id;
    if (phase == Phase::backward || phase == Phase::optimizer) forward_ended = true;
  }
  close(static_cast<OpId>(trace.ops.size()));
  return found;
}

std::int64_t passes_per_step(const Trace& trace) {
  const auto all = static_cast<std::int64_t>(passes(trace).size());
  const auto steps = static_cast<std::int64_t>(std::max<std::size_t>(1, trace.steps.size()));
  return all > steps && all % steps == 0 ? all / steps : 1;
}

bool is_forward_intermediate(const Trace& trace, const Dataflow& flow, const Pass& pass, StorageId storage) {
  const Storage& s = trace.storages[storage];
  switch (s.kind) {
    case StorageKind::parameter:
    case StorageKind::gradient:
    case StorageKind::optimizer_state:
    case StorageKind::input:
    case StorageKind::communication_buffer:
      return false;
    default:
      break;
  }
  const OpId alloc = flow.alloc(storage);
  if (s.preexisting || alloc == kNoOp || alloc < pass.begin || alloc >= pass.backward) return false;
  const std::span<const OpId> writers = flow.writers(storage);
  return !writers.empty() && trace.ops[writers.front()].phase == Phase::forward;
}

bool is_saved_activation(const Trace& trace, const Dataflow& flow, const Pass& pass, StorageId storage) {
  const OpId free = flow.free(storage);
  if (free == kNoOp || free < pass.backward || free >= pass.end) return false;
  const Op& op = trace.ops[free];
  const bool by_backward = op.phase == Phase::backward || op.thread == trace.ops[pass.backward].thread;
  return by_backward && is_forward_intermediate(trace, flow, pass, storage);
}

}  // namespace memwall
