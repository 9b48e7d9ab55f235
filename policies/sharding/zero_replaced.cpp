#include "policies/sharding/zero_replaced.h"

#include <algorithm>
#include <set>

namespace memwall {
namespace {

class ReplacedFinder {
 public:
  ReplacedFinder(const Trace& trace, const Dataflow& flow, const std::vector<OpId>& all_reduces)
      : t_(trace), flow_(flow), ops_(all_reduces.begin(), all_reduces.end()) {}

  ReplacedReduction run(std::vector<OpId> all_reduces) {
    find_buckets(all_reduces);
    for (const StorageId bucket : buckets_)
      for (const Touch& touch : flow_.touches(bucket)) ops_.insert(touch.op);
    remove_idle_events(all_reduces);
    return {std::move(all_reduces), {ops_.begin(), ops_.end()}, {buckets_.begin(), buckets_.end()}};
  }

 private:
  bool is_bucket(StorageId id) const { return t_.storages[id].kind == StorageKind::communication_buffer; }

  // Gradients go in and sums come out, and nothing else.
  bool only_moves_gradients(const Op& op) const {
    if (!runs_on_device(op.kind) || op.phase != Phase::backward || op.graph_member) return false;
    return std::ranges::all_of(t_.uses_of(op), [this](const Use& use) {
      return is_bucket(use.storage) || t_.storages[use.storage].kind == StorageKind::gradient;
    });
  }

  void find_buckets(const std::vector<OpId>& all_reduces) {
    std::set<StorageId> candidates;
    for (const OpId id : all_reduces)
      for (const Use& use : t_.uses_of(t_.ops[id]))
        if (is_bucket(use.storage)) candidates.insert(use.storage);
    for (const StorageId id : candidates)
      if (std::ranges::all_of(flow_.touches(id), [&](const Touch& touch) {
            return ops_.contains(touch.op) || only_moves_gradients(t_.ops[touch.op]);
          }))
        buckets_.insert(id);
  }

  void remove_idle_events(const std::vector<OpId>& all_reduces) {
    std::set<std::uint16_t> idle;
    for (const OpId id : all_reduces) idle.insert(t_.ops[id].stream);
    for (OpId id = 0; id < t_.ops.size(); ++id)
      if (runs_on_device(t_.ops[id].kind) && !ops_.contains(id)) idle.erase(t_.ops[id].stream);
    std::set<std::uint32_t> pointless, awaited;  // events: recorded on an idle stream; with a wait that stays
    for (const Op& op : t_.ops)
      if (op.kind == OpKind::event_record && idle.contains(op.stream)) pointless.insert(op.target);
    std::set<std::uint32_t> touched = pointless;  // their records or waits go
    for (OpId id = 0; id < t_.ops.size(); ++id) {
      const Op& op = t_.ops[id];
      if (op.kind == OpKind::synchronize && op.wait_for == WaitFor::event) awaited.insert(op.target);
      if (op.kind != OpKind::event_wait) continue;
      if (idle.contains(op.stream) || pointless.contains(op.target)) {
        ops_.insert(id);
        touched.insert(op.target);
      } else {
        awaited.insert(op.target);
      }
    }
    for (OpId id = 0; id < t_.ops.size(); ++id)
      if (t_.ops[id].kind == OpKind::event_record && touched.contains(t_.ops[id].target) &&
          !awaited.contains(t_.ops[id].target))
        ops_.insert(id);
  }

  const Trace& t_;
  const Dataflow& flow_;
  std::set<OpId> ops_;
  std::set<StorageId> buckets_;
};

}  // namespace

bool ReplacedReduction::has(OpId op) const { return std::ranges::binary_search(ops, op); }

ReplacedReduction find_replaced_reduction(const Trace& trace, const Dataflow& flow, std::vector<OpId> all_reduces) {
  if (all_reduces.empty()) return {};
  ReplacedFinder finder(trace, flow, all_reduces);
  return finder.run(std::move(all_reduces));
}

void take_out(TraceEdit& edit, const Dataflow& flow, const ReplacedReduction& replaced) {
  for (const OpId id : replaced.ops) edit.remove(id);
  for (const StorageId id : replaced.buckets) {
    edit.tables().storages[id].preexisting = false;
    for (const OpId end : {flow.alloc(id), flow.free(id)})
      if (end != kNoOp) edit.remove(end);
  }
}

}  // namespace memwall
