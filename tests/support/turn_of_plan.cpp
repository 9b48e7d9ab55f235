#include "tests/support/turn_of_plan.h"

#include <algorithm>
#include <set>
#include <tuple>

namespace memwall {
namespace {

using Kind = TurnEvent::Kind;

TurnEvent event_of(Kind kind, std::uint32_t storage, std::uint8_t path = TurnEvent::kNoPath) {
  TurnEvent event;
  event.kind = kind, event.storage = storage, event.path = path;
  return event;
}

std::size_t in_turn(std::int32_t slot, std::size_t slots) {
  const auto turn = static_cast<std::int32_t>(slots);
  return static_cast<std::size_t>((slot % turn + turn) % turn);
}

// Moves in the slots of a turn.
class MovesInTurn {
 public:
  MovesInTurn(const StepCycle& cycle, const MovePlan& plan)
      : cycle_(cycle), copies_(cycle.size()), drops_(cycle.size()), fetches_(cycle.size()) {
    for (const PlannedMove& move : plan.moves) {
      const CycleGap& gap = cycle.gaps()[move.gap];
      if (move.copy != PlannedMove::kNoCopy)
        copies_[in_turn(move.copy, cycle.size())].push_back(event_of(Kind::copy, gap.storage, move.path));
      drops_[in_turn(move.drop, cycle.size())].push_back(event_of(Kind::drop, gap.storage));
    }
    for (const std::uint32_t m : plan.fetch_order) {
      const PlannedMove& move = plan.moves[m];
      const CycleGap& gap = cycle.gaps()[move.gap];
      if (!gap.returns) continue;
      TurnEvent fetch = event_of(Kind::fetch, gap.storage, gap.needs_content ? move.path : TurnEvent::kNoPath);
      const CycleStorage& storage = cycle.storages()[gap.storage];
      fetch.uncounted = move.fetch == static_cast<std::int32_t>(cycle.size()) && !storage.across;
      (fetch.uncounted ? at_end_ : fetches_[in_turn(move.fetch, cycle.size())]).push_back(fetch);
    }
  }

  Turn run() {
    for (const CycleStorage& s : cycle_.storages()) turn_.storages.push_back({s.held, s.moved, s.across});
    add_works();
    all(Kind::appear, [](const CycleStorage& s) { return s.from_before && !s.across; });
    for (TurnEvent& event : turn_.events) event.uncounted = true;
    for (std::uint32_t slot = 0; slot < cycle_.size(); ++slot) {
      append(copies_[slot]), append(drops_[slot]), append(fetches_[slot]);
      all(Kind::appear, [&](const CycleStorage& s) { return !s.from_before && s.first == slot; });
      TurnEvent work;
      work.work = slot;
      turn_.events.push_back(work);
      all(Kind::give_back, [&](const CycleStorage& s) { return !s.to_next && s.last == slot; });
    }
    append(at_end_);
    all(Kind::give_back, [](const CycleStorage& s) { return s.to_next && !s.across; });
    return std::move(turn_);
  }

 private:
  void add_works() {
    for (const CycleSlot& slot : cycle_.slots()) turn_.works.push_back({slot.time, {}});
    for (std::uint32_t s = 0; s < cycle_.storages().size(); ++s)
      for (const CycleTouch& touch : cycle_.storages()[s].touches)
        turn_.works[touch.slot].touches.push_back({s, touch.reads, touch.writes});
  }
  template <typename Is>
  void all(Kind kind, Is is) {
    for (std::uint32_t s = 0; s < cycle_.storages().size(); ++s)
      if (is(cycle_.storages()[s])) turn_.events.push_back(event_of(kind, s));
  }
  void append(const std::vector<TurnEvent>& events) {
    turn_.events.insert(turn_.events.end(), events.begin(), events.end());
  }

  const StepCycle& cycle_;
  std::vector<std::vector<TurnEvent>> copies_, drops_, fetches_;  // by slot
  std::vector<TurnEvent> at_end_;
  Turn turn_;
};

// What the plan does between the ops of a trace.
class PlanInTurn {
 public:
  PlanInTurn(const StepProfile& profile, const MemoryPlan& plan) : p_(profile), trace_(profile.trace()) {
    for (StorageId s = 0; s < trace_.storages.size(); ++s) {
      const bool stays = trace_.storages[s].preexisting && p_.flow().free(s) == kNoOp;
      turn_.storages.push_back({p_.held(s), trace_.storages[s].bytes, stays});
    }
    number_works();
    for (const StorageDecision& d : plan.storages) {
      for (const PlannedCopy& copy : d.copies) planned(copy.at, 0, event_of(Kind::copy, d.storage, copy.tier));
      for (const PlannedDrop& drop : d.drops) planned(drop.at, 1, event_of(Kind::drop, d.storage));
      for (const PlannedFetch& fetch : d.fetches) planned(fetch.at, 2, event_of(Kind::fetch, d.storage, fetch.tier));
    }
    for (const PlannedRerun& rerun : plan.reruns) {
      TurnEvent event;
      event.kind = Kind::again;
      for (const OpId op : rerun.ops)
        if (runs_on_device(trace_.ops[op].kind)) event.again.push_back(work_of_[op]);
      planned(rerun.at, 3, event);
    }
    for (const PlannedKeep& keep : plan.keeps) {
      const OpId freed = p_.flow().free(keep.storage);
      if (freed == kNoOp || !(PlanPoint{freed, false, 0} < keep.until)) continue;
      kept_.insert(keep.storage);
      planned(keep.until, 4, event_of(Kind::give_back, keep.storage));
    }
    std::stable_sort(planned_.begin(), planned_.end(), [](const Planned& a, const Planned& b) {
      return std::tuple(a.at, a.kind) < std::tuple(b.at, b.kind);
    });
  }

  Turn run() {
    for (StorageId s = 0; s < trace_.storages.size(); ++s)
      if (trace_.storages[s].preexisting && !turn_.storages[s].stays && p_.on_device(s))
        turn_.events.push_back(event_of(Kind::appear, s));
    for (OpId id = 0; id < trace_.ops.size(); ++id) {
      planned_until({id, true, 0});
      add(id);
    }
    planned_until({static_cast<OpId>(trace_.ops.size()), true, 0});
    for (StorageId s = 0; s < trace_.storages.size(); ++s)
      if (p_.flow().free(s) == kNoOp && !turn_.storages[s].stays && p_.on_device(s))
        turn_.events.push_back(event_of(Kind::give_back, s));
    return std::move(turn_);
  }

 private:
  struct Planned {
    PlanPoint at;
    int kind = 0;
    TurnEvent event;
  };

  void planned(const PlanPoint& at, int kind, TurnEvent event) { planned_.push_back({at, kind, std::move(event)}); }
  void planned_until(const PlanPoint& end) {
    for (; next_ < planned_.size() && planned_[next_].at < end; ++next_) turn_.events.push_back(planned_[next_].event);
  }

  void number_works() {
    work_of_.resize(trace_.ops.size());
    for (OpId id = 0; id < trace_.ops.size(); ++id) {
      const Op& op = trace_.ops[id];
      if (!runs_on_device(op.kind)) continue;
      work_of_[id] = static_cast<std::uint32_t>(turn_.works.size());
      TurnWork work{op.duration, {}};
      for (const Use& use : trace_.uses_of(op)) {
        if (!p_.on_device(use.storage)) continue;
        auto touch = std::find_if(work.touches.begin(), work.touches.end(),
                                  [&](const TurnTouch& t) { return t.storage == use.storage; });
        if (touch == work.touches.end()) touch = work.touches.insert(touch, {use.storage, false, false});
        (use.access == Access::write ? touch->writes : touch->reads) = true;
      }
      turn_.works.push_back(std::move(work));
    }
  }

  void add(OpId id) {
    const Op& op = trace_.ops[id];
    if (op.kind == OpKind::alloc && p_.on_device(op.target)) turn_.events.push_back(event_of(Kind::appear, op.target));
    if (op.kind == OpKind::free && p_.on_device(op.target) && !kept_.contains(op.target))
      turn_.events.push_back(event_of(Kind::give_back, op.target));
    if (!runs_on_device(op.kind)) return;
    TurnEvent work;
    work.work = work_of_[id];
    turn_.events.push_back(work);
  }

  const StepProfile& p_;
  const Trace& trace_;
  std::vector<std::uint32_t> work_of_;  // by op
  std::vector<Planned> planned_;
  std::set<StorageId> kept_;  // longer than the trace does
  std::size_t next_ = 0;
  Turn turn_;
};

}  // namespace

Turn turn_of(const StepCycle& cycle, const MovePlan& plan) { return MovesInTurn(cycle, plan).run(); }

Turn turn_of(const StepProfile& profile, const MemoryPlan& plan) { return PlanInTurn(profile, plan).run(); }

}  // namespace memwall
