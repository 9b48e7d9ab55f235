#include "policies/trace/dataflow.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace memwall {

Dataflow::Dataflow(const Trace& trace)
    : phases_(trace),
      alloc_(trace.storages.size(), kNoOp),
      free_(trace.storages.size(), kNoOp),
      first_touch_(trace.storages.size() + 1, 0),
      first_writer_(trace.storages.size() + 1, 0) {
  std::vector<OpId> last(trace.storages.size(), kNoOp);  // the op that touched it last
  for (OpId id = 0; id < trace.ops.size(); ++id) {
    const Op& op = trace.ops[id];
    if (op.kind == OpKind::alloc) alloc_[op.target] = id;
    if (op.kind == OpKind::free) free_[op.target] = id;
    for (const Use& use : trace.uses_of(op)) {
      if (std::exchange(last[use.storage], id) != id) ++first_touch_[use.storage + 1];
      if (use.access == Access::write) ++first_writer_[use.storage + 1];
    }
  }
  std::partial_sum(first_touch_.begin(), first_touch_.end(), first_touch_.begin());
  std::partial_sum(first_writer_.begin(), first_writer_.end(), first_writer_.begin());
  touches_.resize(first_touch_.back());
  writers_.resize(first_writer_.back());
  std::vector<std::uint32_t> touch = first_touch_, writer = first_writer_;  // where each storage's next one goes
  for (OpId id = 0; id < trace.ops.size(); ++id)
    for (const Use& use : trace.uses_of(trace.ops[id])) {
      std::uint32_t& next = touch[use.storage];
      if (next == first_touch_[use.storage] || touches_[next - 1].op != id) touches_[next++].op = id;
      (use.access == Access::read ? touches_[next - 1].reads : touches_[next - 1].writes) = true;
      if (use.access == Access::write) writers_[writer[use.storage]++] = id;
    }
}

std::span<const Touch> Dataflow::touches(StorageId s) const {
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
