#include "policies/recompute/recompute.h"

#include <algorithm>
#include <utility>

namespace memwall {
namespace {

bool is_read_by_backward(const Dataflow& flow, const UnitPlan& unit, StorageId s) {
  return !unit.rerun.empty() && flow.touches(s).back().op >= unit.position;
}

// Behind its last use in forward, or ever where backward does not read it.
PlanPoint last_use(const Trace& trace, const Dataflow& flow, const UnitPlan& unit, StorageId s) {
  const bool again = is_read_by_backward(flow, unit, s);
  const auto touches = flow.touches(s);
  OpId last = touches.front().op;
  for (const Touch& touch : touches)
    if (!again || touch.op < unit.position) last = touch.op;
  while (last + 1 < trace.ops.size() && trace.ops[last + 1].graph_member) ++last;
  return {last, true, 0};
}

}  // namespace

MemoryPlan memory_plan_of(const Trace& trace, const Dataflow& flow, const RecomputePlan& plan) {
  MemoryPlan memory;
  for (const UnitPlan& unit : plan.units) {
    for (const StorageId s : unit.dropped) {
      StorageDecision decision;
      decision.storage = s;
      decision.drops.push_back({last_use(trace, flow, unit, s)});
      memory.storages.push_back(std::move(decision));
    }
    if (unit.rerun.empty()) continue;
    std::vector<OpId> ops = unit.rerun;
    for (const RepeatedGather& repeated : unit.gathers) ops.push_back(repeated.gather);
    std::ranges::sort(ops);
    memory.reruns.push_back({{unit.position, false, 0}, std::move(ops)});
  }
  return memory;
}

}  // namespace memwall
