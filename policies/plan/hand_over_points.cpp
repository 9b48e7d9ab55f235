#include "policies/plan/hand_over_points.h"

namespace memwall {
namespace {

// What stood at two points now stands at one: `order` keeps them apart.
void move(PlanPoint& point, const Trace& trace) {
  constexpr std::uint32_t kBehind = std::uint32_t{1} << 30;
  if (point.op >= trace.ops.size() || trace.ops[point.op].kind != OpKind::hand_over) return;
  if (point.after) point.order += kBehind;
  point.after = true;
}

}  // namespace

MemoryPlan behind_hand_overs(MemoryPlan plan, const Trace& trace) {
  const auto move_all = [&](auto& items) {
    for (auto& item : items) move(item.at, trace);
  };
  for (StorageDecision& d : plan.storages) {
    move_all(d.copies);
    move_all(d.drops);
    move_all(d.fetches);
  }
  move_all(plan.reruns);
  for (PlannedKeep& keep : plan.keeps) move(keep.until, trace);
  return plan;
}

}  // namespace memwall
