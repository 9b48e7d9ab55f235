#include "policies/recompute/recompute.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "policies/trace/rerun_rules.h"

namespace memwall {
namespace {

bool is_read_by_backward(const Dataflow& flow, const UnitPlan& unit, StorageId s) {
  return !unit.rerun.empty() && flow.touches(s).back().op >= unit.position;
}

PlanPoint behind(const Trace& trace, OpId op) { return {last_of_graph(trace, op), true, 0}; }

// Behind its last use in forward, or ever where backward does not read it.
PlanPoint last_use(const Trace& trace, const Dataflow& flow, const UnitPlan& unit, StorageId s) {
  const bool again = is_read_by_backward(flow, unit, s);
  const auto touches = flow.touches(s);
  OpId last = touches.front().op;
  for (const Touch& touch : touches)
    if (!again || touch.op < unit.position) last = touch.op;
  return behind(trace, last);
}

// One per storage: as long as any unit needs it. What has a decision is given back where that says.
std::vector<PlannedKeep> keeps_of(const RecomputePlan& plan, const std::set<StorageId>& decided) {
  std::map<StorageId, PlanPoint> until;
  for (const UnitPlan& unit : plan.units)
    for (const KeptStorage& keep : unit.keeps) {
      const PlanPoint point{keep.until, !keep.before, 0};
      const auto [at, is_new] = until.try_emplace(keep.storage, point);
      if (!is_new && at->second < point) at->second = point;
    }
  std::vector<PlannedKeep> keeps;
  for (const auto& [storage, point] : until)
    if (!decided.contains(storage)) keeps.push_back({storage, point});
  return keeps;
}

}  // namespace

MemoryPlan memory_plan_of(const Trace& trace, const Dataflow& flow, const RecomputePlan& plan) {
  MemoryPlan memory;
  std::set<StorageId> decided;
  const auto drop = [&](StorageId storage, const PlanPoint& point) {
    StorageDecision decision;
    decision.storage = storage;
    decision.drops.push_back({point});
    memory.storages.push_back(std::move(decision));
    decided.insert(storage);
  };
  for (const UnitPlan& unit : plan.units) {
    std::map<StorageId, PlanPoint> until, released;
    for (const KeptStorage& cast : unit.casts) until[cast.storage] = behind(trace, cast.until);
    for (const ReleasedStorage& r : unit.released) released[r.storage] = behind(trace, r.after);
    const auto drop_again = [&](StorageId s) {
      if (const auto at = released.find(s); at != released.end()) memory.storages.back().drops.push_back({at->second});
    };
    for (const StorageId s : unit.dropped) {
      const auto at = until.find(s);
      drop(s, at != until.end() ? at->second : last_use(trace, flow, unit, s));
      drop_again(s);
    }
    for (const RemadeStorage& remade : unit.remade) {
      drop(remade.storage, behind(trace, remade.last));
      drop_again(remade.storage);
    }
    for (const auto& [storage, point] : released)
      if (!decided.contains(storage)) drop(storage, point);
    if (unit.rerun.empty()) continue;
    std::vector<OpId> ops = unit.rerun;
    for (const RepeatedGather& repeated : unit.gathers) ops.push_back(repeated.gather);
    std::ranges::sort(ops);
    memory.reruns.push_back({{unit.position, false, 0}, std::move(ops), unit.called});
  }
  memory.keeps = keeps_of(plan, decided);
  return memory;
}

}  // namespace memwall
