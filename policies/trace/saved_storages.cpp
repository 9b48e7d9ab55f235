#include "policies/trace/saved_storages.h"

#include <algorithm>

#include "policies/trace/operator_name.h"

namespace memwall {

SavedStorages::SavedStorages(const Trace& trace, const Dataflow& flow) : t_(trace), flow_(flow) {
  find_saves();
  if (known_) find_nodes();
}

std::optional<SavePoint> SavedStorages::saved_at(StorageId storage) const {
  const auto found = saved_at_.find(storage);
  if (found == saved_at_.end()) return std::nullopt;
  SavePoint point = found->second;
  for (const Touch& touch : flow_.touches(storage)) {
    if (flow_.phases().kind(touch.op) != RunKind::forward) break;
    if (touch.writes && SavePoint{point.at} < SavePoint{{touch.op, true}}) point = {{touch.op, true}};
  }
  return point;
}

OpId SavedStorages::first_of_node(OpId op) const {
  const auto found = first_of_node_.find(op);
  return found == first_of_node_.end() ? op : found->second;
}

OpId SavedStorages::first_node_from(OpId op, OpId end) const {
  const auto found = first_of_node_.lower_bound(op);
  return found == first_of_node_.end() ? end : std::min(found->first, end);
}

OpId SavedStorages::node_end(OpId op) const {
  const auto found = saving_.contains(op) ? node_end_.find(op) : node_end_.end();
  return found != node_end_.end() ? found->second : kNoOp;
}

OpId SavedStorages::node_released(OpId op) const {
  const auto found = saving_.contains(op) ? node_released_.find(op) : node_released_.end();
  return found != node_released_.end() ? found->second : kNoOp;
}

std::optional<OpId> SavedStorages::handed_until(StorageId storage) const {
  const OpId last = flow_.touches(storage).back().op, free = flow_.free(storage);
  if (free == kNoOp) return std::nullopt;
  if (const auto rerun = last_of_rerun_.find(first_of_node(last)); rerun != last_of_rerun_.end())
    return rerun->second < free ? std::optional<OpId>(rerun->second) : std::nullopt;
  if (says_nodes_) {
    const OpId end = end_of_nodes(storage, last);
    for (OpId id = end + 1; id < free; ++id)
      if (runs_on_device(t_.ops[id].kind)) return end;
    return std::nullopt;
  }
  bool sums_follow = false;
  for (OpId id = free; id-- > last;) {
    if (!runs_on_device(t_.ops[id].kind)) continue;
    if (id == last || !sums_gradients(id)) return sums_follow ? std::optional<OpId>(id) : std::nullopt;
    sums_follow = true;
  }
  return std::nullopt;
}

// Where the last node has run that is handed the storage: the one of `last`, which reads it last, or of another
// operator that has saved it. Sums of the gradients of what was broadcast come when a node has let go of what it was
// handed.
OpId SavedStorages::end_of_nodes(StorageId storage, OpId last) const {
  OpId end = last;
  const auto extend = [&](OpId owner) {
    const auto found = node_end_.find(owner);
    if (found != node_end_.end()) end = std::max(end, found->second);
  };
  extend(t_.ops[last].source);
  if (const auto savers = savers_.find(storage); savers != savers_.end()) std::ranges::for_each(savers->second, extend);
  return end;
}

bool SavedStorages::sums_gradients(OpId op) const {
  const auto uses = t_.uses_of(t_.ops[op]);
  return plain_operator_name(operator_of(t_, t_.ops[op])) == "sum" && std::ranges::none_of(uses, [&](const Use& use) {
           return use.access == Access::read && savers_.contains(use.storage);
         });
}

void SavedStorages::save(StorageId storage, SavePoint point) {
  const auto [known, is_new] = saved_at_.try_emplace(storage, point);
  if (!is_new && point < known->second) known->second = point;
}

void SavedStorages::find_saves() {
  for (OpId id = 0; id < t_.ops.size(); ++id) {
    const auto uses = t_.uses_of(t_.ops[id]);
    for (std::size_t i = 0; i < uses.size(); ++i) {
      if (!uses[i].saved) continue;
      known_ = true;
      saving_.insert(id);
      std::vector<OpId>& savers = savers_[uses[i].storage];
      if (savers.empty() || savers.back() != id) savers.push_back(id);
      if (flow_.phases().kind(id) == RunKind::forward)
        save(uses[i].storage, {{id, uses[i].access == Access::write}, i});
    }
  }
}

// The operator whose node runs `op`: the one whose node is running, or the newest that saved what it reads.
OpId SavedStorages::saver_for(OpId op, OpId current) const {
  OpId newest = kNoOp, in_module = kNoOp;
  for (const Use& use : t_.uses_of(t_.ops[op])) {
    const auto savers = savers_.find(use.storage);
    if (use.access == Access::write || savers == savers_.end()) continue;
    for (const OpId saver : savers->second) {
      if (saver >= op || over_.contains(saver)) continue;
      const bool same_module = t_.ops[saver].module == t_.ops[op].module;
      if (saver == current && same_module) return current;
      if (newest == kNoOp || saver > newest) newest = saver;
      if (same_module && (in_module == kNoOp || saver > in_module)) in_module = saver;
    }
  }
  return in_module != kNoOp ? in_module : newest;
}

// The operator whose node runs `op`; kNoOp: none that has saved anything.
OpId SavedStorages::owner_of(OpId op, OpId current) const {
  if (!says_nodes_) return saver_for(op, current);
  const OpId owner = t_.ops[op].source;
  return owner != kNoOp && saving_.contains(owner) ? owner : kNoOp;
}

void SavedStorages::find_nodes() {
  for (OpId id = 0; id < t_.ops.size(); ++id) {
    const Op& op = t_.ops[id];
    if (op.phase != Phase::backward || op.source == kNoOp || !runs_on_device(op.kind)) continue;
    says_nodes_ = true;
    node_released_[op.source] = id;
    if (!sums_gradients(id)) node_end_[op.source] = id;
  }
  OpId current = kNoOp, first = kNoOp;
  for (OpId id = 0; id < t_.ops.size(); ++id) {
    const Op& op = t_.ops[id];
    if (!runs_on_device(op.kind) || flow_.phases().kind(id) != RunKind::backward) continue;
    if (op.phase == Phase::recompute) {
      OpId end = id + 1;
      for (OpId last = id; end < t_.ops.size(); ++end) {
        const Op& next = t_.ops[end];
        if (!runs_on_device(next.kind)) continue;
        if (next.phase != Phase::recompute || next.source == kNoOp || next.source <= t_.ops[last].source) break;
        last = end;
      }
      add_reruns(id, end);
      id = end - 1;
      continue;
    }
    const OpId saver = owner_of(id, current);
    if (saver == kNoOp) continue;
    if (saver != current) {
      if (current != kNoOp) over_.insert(current);
      current = saver;
      first = id;
    }
    first_of_node_[id] = first;
  }
}

// A unit that is run again by the ops from `first` to before `end`.
void SavedStorages::add_reruns(OpId first, OpId end) {
  if (t_.ops[first].source == kNoOp) return;
  std::set<StorageId> made;
  for (OpId id = first; id < end; ++id) {
    const Op& op = t_.ops[id];
    if (op.phase != Phase::recompute || !runs_on_device(op.kind)) continue;
    first_of_node_[id] = first;
    last_of_rerun_[first] = id;
    const auto uses = t_.uses_of(op);
    for (std::size_t i = 0; i < uses.size(); ++i) {
      if (uses[i].access == Access::write)
        made.insert(uses[i].storage);
      else if (!made.contains(uses[i].storage))
        save(uses[i].storage, {{t_.ops[first].source, false}, i});
    }
  }
}

}  // namespace memwall
