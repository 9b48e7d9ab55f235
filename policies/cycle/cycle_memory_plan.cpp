#include "policies/cycle/cycle_memory_plan.h"

#include <algorithm>
#include <map>

namespace memwall {
namespace {

class Translation {
 public:
  Translation(const CycledStep& step, const StepCycle& cycle, const MovePlan& plan)
      : step_(step), cycle_(cycle), plan_(plan), turn_(static_cast<std::int32_t>(cycle.size())) {}

  MemoryPlan run(std::vector<TransferStyle> tiers) {
    std::vector<std::uint32_t> fetch_rank(plan_.moves.size(), 0);
    for (std::uint32_t i = 0; i < plan_.fetch_order.size(); ++i) fetch_rank[plan_.fetch_order[i]] = i;
    for (std::uint32_t m = 0; m < plan_.moves.size(); ++m) add(m, fetch_rank[m]);
    MemoryPlan result;
    result.tiers = std::move(tiers);
    for (auto& [storage, decision] : decisions_) {
      const auto ascend = [](const auto& a, const auto& b) { return a.at < b.at; };
      std::sort(decision.copies.begin(), decision.copies.end(), ascend);
      std::sort(decision.drops.begin(), decision.drops.end(), ascend);
      std::sort(decision.fetches.begin(), decision.fetches.end(), ascend);
      if (decision.home != StorageDecision::kDevice) decision.held = StorageDecision::kDevice;
      result.storages.push_back(std::move(decision));
    }
    return result;
  }

 private:
  // Right behind the slot before: ahead of what the host allocates for the slot.
  PlanPoint leaving_point(std::int32_t slot, std::uint32_t order) const {
    if (slot == 0) return {0, false, order};
    const SlotPlace& place = step_.places[static_cast<std::size_t>(slot - 1)];
    return {place.op, !place.is_rerun, (place.is_rerun ? rerun_order(place.reruns) : 0) + order + 1};
  }

  // Right before the slot's own work; of the slot behind the last, after the last op.
  PlanPoint point(std::int32_t slot, std::uint32_t order) const {
    if (slot == turn_) return {step_.places.back().op, true, order + 1};
    const SlotPlace& place = step_.places[static_cast<std::size_t>(slot)];
    return {place.op, false, rerun_order(place.reruns) - kMostMoves + order};
  }

  void add(std::uint32_t m, std::uint32_t fetch_rank) {
    const PlannedMove& move = plan_.moves[m];
    const CycleGap& gap = cycle_.gaps()[move.gap];
    const bool across = cycle_.storages()[gap.storage].across;
    const StorageId storage = step_.storages[gap.storage];
    StorageDecision& d = decisions_[storage];
    d.storage = storage;
    const std::int32_t shift = move.drop >= turn_ ? turn_ : 0;  // of a gap that wraps and is used in the next turn only
    const bool at_border = across && move.drop < turn_ && move.fetch >= turn_;
    if (at_border) d.home = move.path;
    if (move.copy != PlannedMove::kNoCopy) {
      const std::int32_t copy = move.copy - shift;
      // Issued in the turn before: every turn ends with it.
      if (copy < 0) d.held = move.path;
      d.copies.push_back({leaving_point(copy < 0 ? copy + turn_ : copy, m), move.path});
    } else if (gap.needs_content && gap.returns && across) {
      relies_on_copy(gap, move, shift, d);
    }
    // At one point: copies, then drops, then fetches, each in the plan's order.
    const auto behind_copies = static_cast<std::uint32_t>(plan_.moves.size());
    d.drops.push_back({leaving_point(move.drop - shift, behind_copies)});
    if (!gap.returns) return;
    const std::int32_t fetch = at_border ? move.fetch - turn_ : move.fetch - shift;
    d.fetches.push_back({point(fetch, behind_copies + 1 + fetch_rank), gap.needs_content ? move.path : PlannedFetch::kNoTier});
  }

  // Of another move, or of none where the content never changes: is it of the turn before?
  void relies_on_copy(const CycleGap& gap, const PlannedMove& move, std::int32_t shift, StorageDecision& d) const {
    if (!gap.needs_copy) {
      d.held = move.path;
      return;
    }
    for (const PlannedMove& other : plan_.moves) {
      const CycleGap& of = cycle_.gaps()[other.gap];
      if (of.version != gap.version || other.copy == PlannedMove::kNoCopy) continue;
      if (gap.written - of.written + other.copy - shift < 0) d.held = move.path;
    }
  }

  const CycledStep& step_;
  const StepCycle& cycle_;
  const MovePlan& plan_;
  const std::int32_t turn_;
  std::map<StorageId, StorageDecision> decisions_;
};

}  // namespace

MemoryPlan memory_plan_of(const CycledStep& step, const StepCycle& cycle, const MovePlan& plan,
                          std::vector<TransferStyle> tiers) {
  return Translation(step, cycle, plan).run(std::move(tiers));
}

}  // namespace memwall
