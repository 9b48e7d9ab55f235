#include "models/workload/import/execution_trace/derived_lifetimes.h"

#include <algorithm>
#include <cassert>

namespace memwall {
namespace {

class Inserter {
 public:
  Inserter(Trace& trace, const std::vector<OpId>& alive_until) : t_(trace), alive_until_(alive_until) {}

  DerivedLifetimes run() && {
    find_use_ranges();
    std::vector<Op> ops;
    ops.reserve(t_.ops.size() + 2 * t_.storages.size());
    place_.assign(t_.ops.size() + 1, 0);
    for (OpId id = 0; id < t_.ops.size(); ++id) {
      for (const StorageId s : begins_[id]) ops.push_back(lifetime_op(OpKind::alloc, s, t_.ops[id]));
      place_[id] = static_cast<OpId>(ops.size());
      ops.push_back(t_.ops[id]);
      for (const StorageId s : ends_[id]) ops.push_back(lifetime_op(OpKind::free, s, t_.ops[id]));
    }
    place_.back() = static_cast<OpId>(ops.size());
    t_.ops = std::move(ops);
    renumber();
    t_.knowledge.allocations = true;
    lives_.places = std::move(place_);
    return lives_;
  }

 private:
  // The nodes of a CUDA graph follow their launch, nothing stands between.
  OpId before(OpId id) const {
    while (id > 0 && t_.ops[id].graph_member) --id;
    return id;
  }
  OpId behind(OpId id) const {
    while (id + 1 < t_.ops.size() && t_.ops[id + 1].graph_member) ++id;
    return id;
  }

  void find_use_ranges() {
    begins_.resize(t_.ops.size());
    ends_.resize(t_.ops.size());
    std::vector<OpId> last(t_.storages.size(), kNoOp);
    std::vector<bool> seen(t_.storages.size(), false);
    for (OpId id = 0; id < t_.ops.size(); ++id)
      for (const Use& use : t_.uses_of(t_.ops[id])) {
        if (!seen[use.storage] && !t_.storages[use.storage].preexisting) begins_[before(id)].push_back(use.storage);
        seen[use.storage] = true;
        last[use.storage] = id;
      }
    for (StorageId s = 0; s < t_.storages.size(); ++s) {
      if (t_.storages[s].preexisting) continue;
      if (last[s] == kNoOp) {
        ++lives_.unused;
        continue;
      }
      ++lives_.made;
      const OpId until = alive_until_.empty() ? 0 : alive_until_[s];
      if (until == kNoOp) {
        ++lives_.kept;
        continue;
      }
      ++lives_.freed;
      ends_[behind(std::max(last[s], until))].push_back(s);
    }
  }

  // On the thread of the op beside it, at the same time: a mark has a thread too.
  Op lifetime_op(OpKind kind, StorageId storage, const Op& beside) const {
    Op op;
    op.kind = kind;
    op.target = storage;
    op.thread = beside.thread;
    op.stream = t_.storages[storage].stream;
    op.phase = beside.phase;
    op.module = beside.module;
    op.name = op.operator_name = beside.operator_name;
    op.origin = Origin::modelled;
    op.inferred = true;
    op.dispatch = beside.dispatch;
    return op;
  }

  void renumber() {
    for (Op& op : t_.ops) {
      if (op.kind == OpKind::hand_over) op.target = place_[op.target];
      if (op.source != kNoOp) op.source = place_[op.source];
    }
    for (Step& step : t_.steps) {
      step.first = place_[step.first];
      step.last = place_[step.last];
    }
  }

  Trace& t_;
  const std::vector<OpId>& alive_until_;
  std::vector<std::vector<StorageId>> begins_, ends_;  // by op
  std::vector<OpId> place_;                            // by op before: its number now
  DerivedLifetimes lives_;
};

}  // namespace

DerivedLifetimes add_derived_lifetimes(Trace& trace, const std::vector<OpId>& alive_until) {
  assert(alive_until.empty() || alive_until.size() == trace.storages.size());
  return Inserter(trace, alive_until).run();
}

}  // namespace memwall
