// The part of UnitPlanner that re-runs a unit as PyTorch does: its beginning, in order, whatever of it is needed.
#include <algorithm>

#include "policies/recompute/unit_planner.h"
#include "policies/trace/described.h"
#include "policies/trace/operator_name.h"
#include "policies/trace/parameter_casts.h"

namespace memwall {

// By an op of the unit, and is all that wrote it run again? What backward reads and autograd does not keep, the program
// holds by itself, and drops as it did.
bool UnitPlanner::is_kept_by_autograd(StorageId s) const {
  const auto end = unit_.ops.begin() + static_cast<std::ptrdiff_t>(prefix_.ops);
  const auto writers = flow_.writers(s);
  return kept_.contains(s) && std::all_of(writers.begin(), writers.end(),
                                          [&](OpId id) { return std::binary_search(unit_.ops.begin(), end, id); });
}

// Where the trace does not say what autograd keeps: up to the last op whose result backward reads.
void UnitPlanner::guess_prefix() {
  for (const StorageId s : plan_.dropped) {
    if (!is_read_by_backward(s)) continue;
    const auto last = std::upper_bound(unit_.ops.begin(), unit_.ops.end(), flow_.writers(s).back());
    prefix_.ops = std::max(prefix_.ops, static_cast<std::size_t>(last - unit_.ops.begin()));
  }
  if (prefix_.ops > 0 && !rules_.early_stop) prefix_.ops = unit_.ops.size();
}

// Results that the unit's own ops keep and that others read, too. Backward's first reader of any of them begins the
// re-run, as the reader of what was dropped does.
void UnitPlanner::choose_remade() {
  OpId first_reader = kNoOp;
  std::set<StorageId> seen;
  for (std::size_t i = 0; i < prefix_.ops; ++i)
    for (const Use& use : t_.uses_of(t_.ops[unit_.ops[i]])) {
      if (!use.saved || !written_.contains(use.storage) || is_dropped(use.storage)) continue;
      if (t_.storages[use.storage].preexisting || !seen.insert(use.storage).second) continue;
      const OpId reader = first_own_reader(use.storage);
      if (reader == kNoOp) continue;
      first_reader = std::min(first_reader, reader);
      if (may_be_remade(use.storage)) candidates_.push_back(use.storage);
    }
  if (first_reader != kNoOp) plan_.position = std::min(plan_.position, point_before(first_reader));
}

// Of the unit's operators, by their modules, or by the nodes that they made.
bool UnitPlanner::is_own_backward(const Op& op) const {
  return modules_.contains(op.module) || (op.phase == Phase::backward && op.source != kNoOp && inside(op.source));
}

// In backward, by the unit's own.
OpId UnitPlanner::first_own_reader(StorageId s) const {
  for (const Touch& touch : flow_.touches(s))
    if (touch.op >= pass_.backward && is_own_backward(t_.ops[touch.op])) return touch.op;
  return kNoOp;
}

// Where other streams use the storage, the program gives it back when it knows that they are done.
bool UnitPlanner::has_one_stream(StorageId s) const {
  const auto touches = flow_.touches(s);
  return std::all_of(touches.begin(), touches.end(), [&](const Touch& touch) {
    return !runs_on_device(t_.ops[touch.op].kind) || t_.ops[touch.op].stream == t_.storages[s].stream;
  });
}

bool UnitPlanner::may_be_remade(StorageId s) const {
  if (!is_saved_activation(t_, flow_, pass_, s) || !has_one_stream(s) || !is_kept_by_autograd(s)) return false;
  const std::span<const OpId> writers = flow_.writers(s);
  return std::none_of(writers.begin(), writers.end(), [&](OpId id) { return has_kept_result(id); });
}

void UnitPlanner::rerun_prefix() {
  for (std::size_t i = 0; i < prefix_.ops; ++i) {
    const OpId id = unit_.ops[i];
    if (has_kept_result(id))
      plan_.called.push_back(id);
    else
      rerun_.insert(id);
  }
  plan_.kept_results = plan_.called.size();
  for (const OpId id : plan_.called) check_kept_result(id);
  for (const Access access : {Access::write, Access::read})
    for (const OpId id : rerun_)
      for (const Use& use : t_.uses_of(t_.ops[id]))
        if (use.access == access) check_use(id, use);
  if (prefix_.stops_in_call) plan_.called.push_back(unit_.ops[prefix_.ops]);
}

// PyTorch holds the inputs of a unit by reference, and refuses to use them if something has been written to them since.
void UnitPlanner::check_use(OpId id, const Use& use) {
  const StorageId s = use.storage;
  if (gathers_.gather_of(s) != kNoOp) return;  // gathers_to_repeat says which are gathered again
  const bool writes = use.access == Access::write;
  const std::uint32_t version = writes ? use.version - 1 : use.version;
  const OpId writer = flow_.writer(s, version);
  if (t_.storages[s].preexisting) {
    if (writes || updates_itself(id, s) || flow_.version_before(s, plan_.position) == version) return;
    return refuse(described_op(t_, id) + " reads " + described_storage(t_, s) +
                  ", which is overwritten before the recompute");
  }
  if (writer == kNoOp || (inside(writer) && !(writes && has_kept_result(writer)))) return;
  if (writes)
    return refuse(described_op(t_, id) + " works in place on " + described_storage(t_, s) +
                  (inside(writer) ? ", whose content is kept" : ", which is not made in the unit") +
                  ": PyTorch refuses to re-run that");
  if (flow_.version_before(s, plan_.position) != version)
    refuse(described_op(t_, id) + " reads " + described_storage(t_, s) + ", on which " +
           described_op(t_, flow_.writer(s, version + 1)) + " works in place before the re-run: PyTorch refuses that");
}

// Kernels that each write a piece of what one operator makes anew, both kept.
bool UnitPlanner::are_pieces_of_one(OpId one, OpId next, StorageId s) const {
  return one != kNoOp && next != kNoOp && has_kept_result(one) && has_kept_result(next) && !updates_itself(next, s);
}

void UnitPlanner::check_kept_result(OpId id) {
  for (const Use& use : t_.uses_of(t_.ops[id])) {
    if (use.access != Access::write || t_.storages[use.storage].preexisting) continue;
    const bool is_last = flow_.version_before(use.storage, plan_.position) == use.version;
    if (use.version > 1 && !are_pieces_of_one(flow_.writer(use.storage, use.version - 1), id, use.storage))
      refuse(described_op(t_, id) + " works in place, and only what an operator makes anew can be kept");
    else if (!is_last && !are_pieces_of_one(id, flow_.writer(use.storage, use.version + 1), use.storage))
      refuse("the result of " + described_op(t_, id) + " is to be kept, and " +
             described_op(t_, flow_.writer(use.storage, use.version + 1)) +
             " works in place on it: PyTorch refuses that (\"has been mutated\")");
  }
}

// The first copy goes when nobody but the unit's own backward needs it any more.
void UnitPlanner::place_remade() {
  for (const StorageId s : candidates_) {
    const OpId free = flow_.free(s);
    OpId last = kept_until_[s];
    if (plan_.position == kNoOp || last >= plan_.position || free < plan_.position) continue;
    for (const Touch& touch : flow_.touches(s))
      if (touch.op < plan_.position) last = std::max(last, touch.op);
    plan_.remade.push_back({s, last});
    plan_.remade_bytes += t_.storages[s].bytes;
  }
}

void UnitPlanner::place_releases() {
  if (!prefix_.known || plan_.position == kNoOp) return;
  std::map<StorageId, OpId> keeper;  // the first: its node is the last in backward to let go
  for (const OpId id : unit_.ops)
    for (const Use& use : t_.uses_of(t_.ops[id]))
      if (use.saved) keeper.try_emplace(use.storage, id);
  for (const StorageId s : plan_.dropped)
    if (is_read_by_backward(s)) release(s, keeper);
  for (const RemadeStorage& remade : plan_.remade) release(remade.storage, keeper);
  for (std::size_t i = 0; i < prefix_.ops; ++i) {  // handed out by the re-run, too
    if (!has_kept_result(unit_.ops[i])) continue;
    for (const Use& use : t_.uses_of(t_.ops[unit_.ops[i]]))
      if (use.access == Access::write && is_saved_activation(t_, flow_, pass_, use.storage) &&
          first_own_reader(use.storage) >= plan_.position && first_own_reader(use.storage) != kNoOp)
        release(use.storage, keeper);
  }
}

// Of single operators: what is made again is handed to the node that asks for it.
void UnitPlanner::release_to_nodes() {
  for (const StorageId s : plan_.dropped)
    if (const auto last = is_read_by_backward(s) && has_one_stream(s) ? saved_.handed_until(s) : std::nullopt)
      plan_.released.push_back({s, *last});
}

// A node of the graph lets go of what it kept when the sums of its gradients, where something was broadcast, are done,
// too. What was made again is not held by the node but handed to it: it goes before those sums.
void UnitPlanner::release(StorageId s, const std::map<StorageId, OpId>& keeper) {
  const auto found = keeper.find(s);
  if (found == keeper.end() || !has_one_stream(s)) return;
  if (saved_.says_nodes()) {
    if (const auto end = saved_.handed_until(s)) plan_.released.push_back({s, *end});
    return;
  }
  const OpId last = flow_.touches(s).back().op;
  bool sums_follow = false;
  for (OpId id = flow_.free(s); id-- > last;) {
    if (!runs_on_device(t_.ops[id].kind)) continue;
    const bool sums =
        plain_operator_name(operator_of(t_, t_.ops[id])) == "sum" && !reads_what_is_kept(id, found->second);
    if (sums && id > last) {
      sums_follow = true;
      continue;
    }
    if (sums_follow) plan_.released.push_back({s, id});
    return;
  }
}

bool UnitPlanner::reads_what_is_kept(OpId id, OpId keeper) const {
  const auto uses = t_.uses_of(t_.ops[id]), kept = t_.uses_of(t_.ops[keeper]);
  return std::any_of(uses.begin(), uses.end(), [&](const Use& use) {
    return std::any_of(kept.begin(), kept.end(), [&](const Use& k) { return k.saved && k.storage == use.storage; });
  });
}

// Autocast keeps the casts of parameters until its context ends, which is seen where the program gives back casts that
// autograd did not keep: later than their last use.
void UnitPlanner::place_casts() {
  if (!prefix_.known) return;
  for (const StorageId s : plan_.dropped) {
    if (!is_cast_of_parameter(t_, flow_, s)) continue;
    OpId last = 0;
    for (const Touch& touch : flow_.touches(s))
      if (touch.op < pass_.backward) last = touch.op;
    const auto end = std::upper_bound(rules_.cast_ends.begin(), rules_.cast_ends.end(), last);
    if (end != rules_.cast_ends.end() && *end < pass_.backward) plan_.casts.push_back({s, *end, false});
  }
}

// Where the last node of the unit's backward has run: what it kept is given back, or, of inputs and parameters, which
// others hold, too, read for the last time.
OpId UnitPlanner::frame_end() const {
  OpId end = plan_.position;
  for (const StorageId s : plan_.dropped)
    if (is_read_by_backward(s)) end = std::max(end, flow_.free(s));
  for (const RemadeStorage& remade : plan_.remade) end = std::max(end, flow_.free(remade.storage));
  for (const StorageId s : kept_)
    for (const Touch& touch : flow_.touches(s)) {
      const Op& op = t_.ops[touch.op];
      if (touch.op < pass_.end && op.phase == Phase::backward && is_own_backward(op)) end = std::max(end, touch.op);
    }
  return end;
}

// PyTorch's frame of the unit holds its inputs until the last node of its backward has let go of what it kept.
void UnitPlanner::keep_frame() {
  if (plan_.position == kNoOp) return;
  const OpId end = frame_end();
  for (const OpId id : rerun_)
    for (const Use& use : t_.uses_of(t_.ops[id])) {
      const OpId writer = flow_.writer(use.storage, use.version);
      if (use.access == Access::write || gathers_.gather_of(use.storage) != kNoOp) continue;
      if (writer != kNoOp && rerun_.contains(writer)) continue;
      const bool own = writer != kNoOp && inside(writer);
      keep(use.storage, own ? plan_.position : end, own);
    }
  for (std::size_t i = 0; i < unit_.ops.size(); ++i) {
    if (!has_kept_result(unit_.ops[i])) continue;
    const bool handed_out = i < prefix_.ops;  // else the frame holds it to its end
    for (const Use& use : t_.uses_of(t_.ops[unit_.ops[i]]))
      if (use.access == Access::write) keep(use.storage, handed_out ? plan_.position : end, handed_out);
  }
}

void UnitPlanner::keep(StorageId s, OpId until, bool before) {
  OpId& known = kept_until_[s];
  const OpId free = flow_.free(s);
  if (known == 0 && free < plan_.position) plan_.kept_bytes += t_.storages[s].bytes;
  known = std::max(known, until);
  if (!t_.storages[s].preexisting && free < until) plan_.keeps.push_back({s, until, before});
}

}  // namespace memwall
