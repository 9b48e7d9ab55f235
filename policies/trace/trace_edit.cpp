#include "policies/trace/trace_edit.h"

#include <string>

#include "sim/error.h"

namespace memwall {

TraceEdit::TraceEdit(const Trace& base, const HostCosts& costs)
    : base_(base), costs_(costs), builder_(TraceBuilder::like(base)), removed_(base.ops.size(), false) {}

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

void TraceEdit::insert(InsertionPoint point, Op op, std::vector<Use> uses) {
  const Op& beside = base_.ops[anchor(point)];
  op.thread = beside.thread < base_.threads.size() ? beside.thread : 0;
  // Recompute is what repeats a forward op; a policy's own op beside it belongs to backward.
  op.phase = beside.phase == Phase::recompute ? Phase::backward : beside.phase;
  op.added = true;
  op.origin = Origin::modelled;
  insert_complete(point, op, std::move(uses));
}

void TraceEdit::insert_complete(InsertionPoint point, const Op& op, std::vector<Use> uses) {
  if (uses.size() > kMostUsesOfAnOp)
    throw UsageError("Trace '" + base_.name + "': a policy would add an op with " + std::to_string(uses.size()) +
                     " uses of storages; an op holds " + std::to_string(kMostUsesOfAnOp) + " at most.");
  (point.after ? after_ : before_)[anchor(point)].push_back({op, std::move(uses)});
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

void TraceEdit::remove(OpId op, OpId heir) {
  removed_[op] = true;
  if (heir != kNoOp) heirs_[op] = heir;
}

void TraceEdit::replace(OpId op, const Op& by) {
  const auto uses = base_.uses_of(base_.ops[op]);
  replace(op, by, {uses.begin(), uses.end()});
}

void TraceEdit::replace(OpId op, const Op& by, std::vector<Use> uses) { replaced_[op] = {by, std::move(uses)}; }

void TraceEdit::repoint(OpId op, StorageId from, StorageId to) { repoints_[op].push_back({from, to}); }

Trace TraceEdit::apply(std::function<void(OpId, Op&)> change) && {
  change_ = std::move(change);
  std::size_t ops = base_.ops.size(), uses = base_.uses.size();
  for (const auto* list : {&before_, &after_})
    for (const auto& [at, items] : *list) {
      ops += items.size();
      for (const NewOp& item : items) uses += item.uses.size();
    }
  tables().ops.reserve(ops);
  tables().uses.reserve(uses);
  new_id_.assign(base_.ops.size(), kNoOp);
  last_id_.assign(base_.ops.size(), kNoOp);
  for (const Op& op : base_.ops)  // a hand-over needs its source, if only as a point in time
    if (op.kind == OpKind::hand_over && op.target < new_id_.size()) new_id_[op.target] = 0;
  for (OpId id = 0; id < base_.ops.size(); ++id) {
    append_all(before_, id);
    append_base(id);
    append_all(after_, id);
    last_id_[id] = static_cast<OpId>(tables().ops.size() - 1);
  }
  renumber();
  return std::move(builder_).finish();
}

void TraceEdit::append_all(const std::map<OpId, std::vector<NewOp>>& list, OpId at) {
  const auto found = list.find(at);
  if (found == list.end()) return;
  for (const NewOp& item : found->second) append_fresh(item.op, item.uses);
}

void TraceEdit::append_fresh(const Op& op, std::span<const Use> uses) {
  uses_.assign(uses.begin(), uses.end());
  for (Use& use : uses_) use.version = use.access == Access::read ? TraceBuilder::kLatest : 0;
  builder_.append(op, uses_);
}

void TraceEdit::append_base(OpId id) {
  const bool named = new_id_[id] == 0;
  new_id_[id] = static_cast<OpId>(tables().ops.size());
  Op op = base_.ops[id];
  if (removed_[id]) {
    if (!named) return;
    Op mark;
    mark.thread = op.thread;
    mark.phase = op.phase;
    return append_fresh(mark, {});
  }
  std::span<const Use> uses = base_.uses_of(op);
  if (const auto found = replaced_.find(id); found != replaced_.end()) {
    op = found->second.op;
    uses = found->second.uses;
  }
  if (change_) change_(id, op);
  const auto found = repoints_.find(id);
  if (found == repoints_.end()) return append_fresh(op, uses);
  std::vector<Use> changed(uses.begin(), uses.end());
  repoint_uses(changed, found->second);
  if (op.kind == OpKind::alloc || op.kind == OpKind::free)
    for (const Repoint& r : found->second)
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

// Ops that name other ops, and the steps, follow the new numbers.
void TraceEdit::renumber() {
  Trace& t = tables();
  const auto source = [&](OpId id) {
    if (!removed_[id]) return new_id_[id];
    const auto heir = heirs_.find(id);
    return heir == heirs_.end() ? kNoOp : new_id_[heir->second];
  };
  for (Op& op : t.ops) {
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
}

}  // namespace memwall
