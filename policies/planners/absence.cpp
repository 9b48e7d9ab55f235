#include "policies/planners/absence.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "policies/profile/planned_memory.h"

namespace memwall {

OpId first_place(const Trace& trace) {
  OpId id = 0;
  while (id + 1 < trace.ops.size() && (trace.ops[id].kind == OpKind::mark || trace.ops[id].kind == OpKind::hand_over))
    ++id;
  return id;
}

bool may_leave(const StepProfile& profile, StorageId storage) {
  const auto touches = profile.flow().touches(storage);
  return profile.on_device(storage) && std::all_of(touches.begin(), touches.end(), [&](const Touch& touch) {
           return runs_on_device(profile.trace().ops[touch.op].kind);
         });
}

AbsentMemory::AbsentMemory(const StepProfile& profile)
    : profile_(profile), first_(first_place(profile.trace())), live_(profile.trace().ops.size()), at_start_(0) {
  std::vector<Bytes> change(live_.size(), 0);
  const Dataflow& flow = profile.flow();
  for (StorageId s = 0; s < profile.trace().storages.size(); ++s) {
    if (!profile.on_device(s)) continue;
    if (profile.trace().storages[s].preexisting)
      at_start_ += profile.held(s);
    else if (flow.alloc(s) != kNoOp)
      change[flow.alloc(s)] += profile.held(s);
    else
      continue;
    if (flow.free(s) != kNoOp) change[flow.free(s)] -= profile.held(s);
  }
  Bytes live = at_start_;
  for (OpId op = 0; op < live_.size(); ++op) live_[op] = live += change[op];
}

Bytes AbsentMemory::peak() const {
  Bytes most = at_start_;
  for (const Bytes live : live_) most = std::max(most, live);
  return most;
}

// From behind op `first` to before `end`.
void AbsentMemory::add(OpId first, OpId end, Bytes bytes) {
  for (OpId op = first; op < end; ++op) live_[op] += bytes;
}

// Right before `fetched` is still behind the op before it, in whose count it is.
void AbsentMemory::add(const Absence& a, Bytes bytes) {
  const OpId before_fetch = a.fetched == 0 ? 0 : a.fetched - 1;
  if (!a.crosses()) return add(a.dropped, before_fetch, bytes);
  add(a.dropped, static_cast<OpId>(live_.size()), bytes);
  add(0, before_fetch, bytes);
  at_start_ += bytes;
}

void AbsentMemory::fetch_early(Absence& a, Bytes limit) {
  const Bytes bytes = profile_.held(a.gap.storage);
  const OpId least = a.crosses() ? first_ : a.dropped + 1;
  while (a.fetched > least && a.fetched >= 2 && live_[a.fetched - 2] + bytes <= limit) {
    live_[a.fetched - 2] += bytes;
    --a.fetched;
  }
}

void AbsentMemory::drop_late(Absence& a, Bytes limit, OpId last) {
  const Bytes bytes = profile_.held(a.gap.storage);
  while (a.dropped < last && a.dropped + 1 < a.fetched && live_[a.dropped] + bytes <= limit) {
    live_[a.dropped] += bytes;
    ++a.dropped;
  }
}

bool AbsentMemory::stay(const Absence& a, Bytes limit) {
  take_back(a);
  Bytes most = a.crosses() ? at_start_ : 0;
  for (OpId op = 0; op < live_.size(); ++op)
    if (a.crosses() ? op >= a.dropped || op + 1 < a.fetched : op >= a.dropped && op + 1 < a.fetched)
      most = std::max(most, live_[op]);
  if (most <= limit) return true;
  take_away(a);
  return false;
}

namespace {

// When things happen to a storage in the trace: what the next step does comes first.
void add_absence(const Absence& a, std::uint32_t order, StorageDecision& d) {
  const bool held = a.dropped_next && a.copied.op == kNoOp;
  if (a.crosses()) d.home = a.tier;
  if (held) d.held = a.tier;
  const PlanPoint copied = a.copied.op != kNoOp ? a.copied : PlanPoint{a.gap.after, true, 0};
  if (a.gap.needs_content || a.crosses() || held) d.copies.push_back({copied, a.tier});
  d.drops.push_back({{a.dropped, false, 0}});
  d.fetches.push_back({{a.fetched, false, order}, a.gap.needs_content ? a.tier : PlannedFetch::kNoTier});
}

template <typename Item>
void sort_by_place(std::vector<Item>& items) {
  std::sort(items.begin(), items.end(), [](const Item& a, const Item& b) { return a.at < b.at; });
}

}  // namespace

std::vector<StorageDecision> decisions_of(std::vector<Absence> absences) {
  std::sort(absences.begin(), absences.end(), [](const Absence& a, const Absence& b) {
    return std::tuple(a.fetched, a.gap.before, a.gap.storage) < std::tuple(b.fetched, b.gap.before, b.gap.storage);
  });
  std::map<StorageId, StorageDecision> by_storage;
  std::uint32_t order = 0;
  for (const Absence& a : absences) {
    StorageDecision& d = by_storage[a.gap.storage];
    d.storage = a.gap.storage;
    add_absence(a, ++order, d);
  }
  std::vector<StorageDecision> all;
  for (auto& [storage, d] : by_storage) {
    sort_by_place(d.copies), sort_by_place(d.drops), sort_by_place(d.fetches);
    all.push_back(std::move(d));
  }
  return all;
}

}  // namespace memwall
