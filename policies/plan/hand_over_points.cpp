#include "policies/plan/hand_over_points.h"

#include <unordered_map>

namespace memwall {
namespace {

class HandOvers {
 public:
  explicit HandOvers(const Trace& trace) : t_(trace) {
    for (OpId id = 0; id < trace.ops.size(); ++id)
      if (trace.ops[id].kind == OpKind::hand_over) behind_.try_emplace(trace.ops[id].target, id);
  }
  bool empty() const { return behind_.empty(); }

  // What stood at one of three points now stands at one: `order` keeps them apart.
  void move(PlanPoint& point) const {
    constexpr std::uint32_t kStep = std::uint32_t{1} << 28;
    if (point.op >= t_.ops.size()) return;
    if (t_.ops[point.op].kind == OpKind::hand_over) {
      point.order += (point.after ? 2 : 1) * kStep;
      point.after = true;
    }
    if (!point.after) return;
    for (auto next = behind_.find(point.op); next != behind_.end(); next = behind_.find(point.op))
      point.op = next->second;
  }

 private:
  const Trace& t_;
  std::unordered_map<OpId, OpId> behind_;  // by the op that a hand-over waits for; looked up only
};

}  // namespace

MemoryPlan behind_hand_overs(MemoryPlan plan, const Trace& trace) {
  const HandOvers hand_overs(trace);
  if (hand_overs.empty()) return plan;
  const auto move_all = [&](auto& items) {
    for (auto& item : items) hand_overs.move(item.at);
  };
  for (StorageDecision& d : plan.storages) {
    move_all(d.copies);
    move_all(d.drops);
    move_all(d.fetches);
  }
  move_all(plan.reruns);
  for (PlannedKeep& keep : plan.keeps) hand_overs.move(keep.until);
  return plan;
}

}  // namespace memwall
