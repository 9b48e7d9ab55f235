#include "policies/trace/trace_edit.h"

#include <algorithm>
#include <string>
#include <unordered_map>

#include "sim/error.h"

namespace memwall {

TraceEdit::TraceEdit(const Trace& base, const HostCosts& costs)
    : base_(base), costs_(costs), builder_(TraceBuilder::like(base)), changes_(base.ops.size(), 0) {}

std::uint16_t TraceEdit::stream(std::string_view name, StreamRole role, std::uint16_t device) {
  const std::vector<Stream>& streams = tables().streams;
  for (std::size_t i = 0; i < streams.size(); ++i)
    if (streams[i].name == name && streams[i].device == device) return static_cast<std::uint16_t>(i);
  return builder_.add_stream(name, role, device);
}

OpId TraceEdit::anchor(InsertionPoint point) const {
  OpId id = point.op;
  if (!base_.ops[id].graph_member) return id;
  if (point.after) {
    while (id + 1 < base_.ops.size() && base_.ops[id + 1].graph_member) ++id;
  } else {
    while (id > 0 && base_.ops[id].kind != OpKind::graph_launch) --id;
  }
  return id;
}

void TraceEdit::insert(InsertionPoint point, Op op, std::span<const Use> uses) {
  const Op& beside = base_.ops[anchor(point)];
  op.thread = beside.thread < base_.threads.size() ? beside.thread : 0;
  // Recompute is what repeats a forward op; a policy's own op beside it belongs to backward.
  op.phase = beside.phase == Phase::recompute ? Phase::backward : beside.phase;
  op.added = true;
  op.origin = Origin::modelled;
  insert_complete(point, op, uses);
}

void TraceEdit::insert_complete(InsertionPoint point, const Op& op, std::span<const Use> uses) {
  if (uses.size() > kMostUsesOfAnOp)
    throw UsageError("Trace '" + base_.name + "': a policy would add an op with " + std::to_string(uses.size()) +
                     " uses of storages; an op holds " + std::to_string(kMostUsesOfAnOp) + " at most.");
  new_ops_.push_back({2 * std::uint64_t{anchor(point)} + (point.after ? 1 : 0), op, keep(uses)});
}

TraceEdit::Piece TraceEdit::keep(std::span<const Use> uses) {
  const Piece piece{static_cast<std::uint32_t>(new_uses_.size()), static_cast<std::uint32_t>(uses.size())};
  new_uses_.insert(new_uses_.end(), uses.begin(), uses.end());
  return piece;
}

void TraceEdit::lifetime(OpKind kind, InsertionPoint point, StorageId storage) {
  Op op;
  op.kind = kind;
  op.target = storage;
  op.stream = tables().storages[storage].stream;
  op.host_cost = costs_.allocator_call;
  insert(point, op);
}

void TraceEdit::wait(InsertionPoint point, std::uint32_t event, std::uint16_t stream) {
  Op op;
  op.kind = OpKind::event_wait;
  op.target = event;
  op.stream = stream;
  op.host_cost = costs_.event_call;
  insert(point, op);
}

std::uint32_t TraceEdit::record(InsertionPoint point, std::uint16_t stream) {
  Op op;
  op.kind = OpKind::event_record;
  op.target = builder_.add_event();
  op.stream = stream;
  op.host_cost = costs_.event_call;
  insert(point, op);
  return op.target;
}

void TraceEdit::wait_stream(InsertionPoint point, std::uint16_t waiter, std::uint16_t other) {
  if (waiter != other) wait(point, record(point, other), waiter);
}

void TraceEdit::free_behind(InsertionPoint point, StorageId storage, std::uint16_t user) {
  Op op;
  op.kind = OpKind::free;
  op.target = storage;
  op.stream = user;
  op.wait_for = WaitFor::stream;
  op.host_cost = costs_.allocator_call;
  insert(point, op);
}

void TraceEdit::remove(OpId op, OpId heir) {
  changes_[op] |= kRemoved;
  if (heir == kNoOp) return;
  if (heirs_.empty()) heirs_.assign(base_.ops.size(), kNoOp);
  heirs_[op] = heir;
}

void TraceEdit::replace(OpId op, const Op& by) { replace(op, by, base_.uses_of(base_.ops[op])); }

void TraceEdit::replace(OpId op, const Op& by, std::span<const Use> uses) {
  changes_[op] |= kReplaced;
  replaced_.push_back({op, by, keep(uses)});
}

void TraceEdit::repoint(OpId op, StorageId from, StorageId to) {
  changes_[op] |= kRepointed;
  repoints_.push_back({op, from, to});
}

Trace TraceEdit::apply(std::function<void(OpId, Op&)> change) && {
  change_ = std::move(change);
  sort_changes();
  survey_base();
  tables().ops.reserve(base_.ops.size() + new_ops_.size());
  tables().uses.reserve(base_.uses.size() + new_uses_.size());
  new_id_.assign(base_.ops.size(), kNoOp);
  last_id_.assign(base_.ops.size(), kNoOp);
  for (OpId id = 0; id < base_.ops.size(); ++id) {
    append_new(2 * std::uint64_t{id});
    append_base(id);
    append_new(2 * std::uint64_t{id} + 1);
    last_id_[id] = static_cast<OpId>(tables().ops.size() - 1);
  }
  renumber();
  return std::move(builder_).finish();
}

// In the order of the base; what concerns one op, or one place, as it was given.
void TraceEdit::sort_changes() {
  order_.reserve(new_ops_.size());
  for (const NewOp& item : new_ops_) order_.push_back(item.place << 32 | order_.size());
  if (!std::is_sorted(order_.begin(), order_.end())) std::sort(order_.begin(), order_.end());
  const auto earlier = [](const auto& a, const auto& b) { return a.at < b.at; };
  if (!std::is_sorted(replaced_.begin(), replaced_.end(), earlier))
    std::stable_sort(replaced_.begin(), replaced_.end(), earlier);
  if (!std::is_sorted(repoints_.begin(), repoints_.end(), earlier))
    std::stable_sort(repoints_.begin(), repoints_.end(), earlier);
}

// Which ops hand-overs name, which events are recorded more than once.
void TraceEdit::survey_base() {
  for (const Op& op : base_.ops)
    if (op.kind == OpKind::hand_over && op.target < changes_.size()) changes_[op.target] |= kNamed;
}

void TraceEdit::append_new(std::uint64_t place) {
  for (; next_new_ < order_.size() && order_[next_new_] >> 32 == place; ++next_new_) {
    const NewOp& item = new_ops_[order_[next_new_] & 0xffffffff];
    append_fresh(item.op, kept(item.uses));
  }
}

void TraceEdit::append_fresh(const Op& op, std::span<const Use> uses) {
  if (op.source != kNoOp || op.kind == OpKind::hand_over) naming_.push_back(static_cast<OpId>(tables().ops.size()));
  builder_.append_renewed(op, uses);
}

void TraceEdit::append_base(OpId id) {
  new_id_[id] = static_cast<OpId>(tables().ops.size());
  const Op& op = base_.ops[id];
  if ((changes_[id] & ~kNamed) == 0 && !change_) return append_fresh(op, base_.uses_of(op));
  if (!removed(id)) return append_changed(id, op);
  if ((changes_[id] & kNamed) == 0) return;
  Op mark;  // a hand-over needs its source, if only as a point in time
  mark.thread = op.thread;
  mark.phase = op.phase;
  append_fresh(mark, {});
}

void TraceEdit::append_changed(OpId id, Op op) {
  std::span<const Use> uses = base_.uses_of(op);
  if ((changes_[id] & kReplaced) != 0) {
    while (replaced_[next_replaced_].at < id) ++next_replaced_;
    while (next_replaced_ + 1 < replaced_.size() && replaced_[next_replaced_ + 1].at == id) ++next_replaced_;
    op = replaced_[next_replaced_].op;
    uses = kept(replaced_[next_replaced_].uses);
  }
  if (change_) change_(id, op);
  if ((changes_[id] & kRepointed) == 0) return append_fresh(op, uses);
  std::vector<Use> changed(uses.begin(), uses.end());
  while (repoints_[next_repoint_].at < id) ++next_repoint_;  // of ops that were removed
  const std::size_t first = next_repoint_;
  while (next_repoint_ < repoints_.size() && repoints_[next_repoint_].at == id) ++next_repoint_;
  const std::span<const Repoint> repoints(repoints_.data() + first, next_repoint_ - first);
  repoint_uses(changed, repoints);
  if (op.kind == OpKind::alloc || op.kind == OpKind::free)
    for (const Repoint& r : repoints)
      if (op.target == r.from) op.target = r.to;
  append_fresh(op, changed);
}

// One change after the other, each for all uses: an optimizer's step has thousands of both.
void TraceEdit::repoint_uses(std::vector<Use>& uses, std::span<const Repoint> repoints) {
  constexpr std::size_t kFew = 64;  // comparisons, below which a table costs more than it saves
  if (repoints.size() == 1 || uses.size() * repoints.size() <= kFew) {
    for (const Repoint& r : repoints)
      for (Use& use : uses)
        if (use.storage == r.from) use.storage = r.to;
    return;
  }
  std::unordered_map<StorageId, std::vector<Use*>> of_storage;
  for (Use& use : uses) of_storage[use.storage].push_back(&use);
  for (const Repoint& r : repoints) {
    const auto found = of_storage.find(r.from);
    if (found == of_storage.end() || r.from == r.to) continue;
    const std::vector<Use*> moved = std::move(found->second);
    of_storage.erase(found);
    std::vector<Use*>& there = of_storage[r.to];
    there.insert(there.end(), moved.begin(), moved.end());
  }
  for (const auto& [storage, users] : of_storage)
    for (Use* const use : users) use->storage = storage;
}

// Ops that name other ops, the steps and what storages know of ops follow the new numbers.
void TraceEdit::renumber() {
  Trace& t = tables();
  const auto source = [&](OpId id) {
    if (!removed(id)) return new_id_[id];
    return heirs_.empty() || heirs_[id] == kNoOp ? kNoOp : new_id_[heirs_[id]];
  };
  for (const OpId id : naming_) {
    Op& op = t.ops[id];
    // The other thread goes on when what was put behind the op it waits for has been issued too.
    if (op.kind == OpKind::hand_over && op.target < last_id_.size()) op.target = last_id_[op.target];
    if (op.source < new_id_.size()) op.source = source(op.source);
  }
  const auto moved = [&](OpId id) { return id < new_id_.size() ? new_id_[id] : static_cast<OpId>(t.ops.size()); };
  t.steps = base_.steps;
  for (Step& step : t.steps) {
    step.first = moved(step.first);
    step.last = moved(step.last);
  }
  for (StorageId s = 0; s < t.storages.size(); ++s) {
    const OpId last = s < base_.storages.size() ? base_.storages[s].last_referenced : kNoOp;
    t.storages[s].last_referenced = last < new_id_.size() ? std::min<OpId>(new_id_[last], t.ops.size() - 1) : kNoOp;
  }
}

}  // namespace memwall
