#include "policies/plan/rerun_inputs.h"

#include <algorithm>
#include <set>

namespace memwall {

bool RerunInputs::uses(const PlannedRerun& rerun, StorageId s, Access access) const {
  return std::ranges::any_of(rerun.ops, [&](OpId id) {
    const auto uses = t_.uses_of(t_.ops[id]);
    return std::ranges::any_of(uses, [&](const Use& use) { return use.storage == s && use.access == access; });
  });
}

bool RerunInputs::is_decided(StorageId s, const MemoryPlan& plan) {
  return std::ranges::find(plan.storages, s, &StorageDecision::storage) != plan.storages.end();
}

// kNoOp: it has saved nothing, or the trace does not say which nodes run what.
OpId RerunInputs::end_of_backward(const PlannedRerun& unit) const {
  OpId end = kNoOp;
  for (const std::vector<OpId>* ops : {&unit.ops, &unit.called})
    for (const OpId id : *ops)
      if (const OpId last = saved_.node_end(id); last != kNoOp && (end == kNoOp || end < last)) end = last;
  return end;
}

bool RerunInputs::keep(StorageId s, const PlannedRerun& unit, const PlanPoint& until, MemoryPlan& plan) const {
  if (is_decided(s, plan)) return false;
  if (const OpId freed = flow_.free(s); freed == kNoOp || until < PlanPoint{freed, false}) return false;
  const auto known = std::ranges::find(plan.keeps, s, &PlannedKeep::storage);
  if (known == plan.keeps.end()) {
    plan.keeps.push_back({s, until});
    return true;
  }
  if (unit.at < known->until) return false;  // as the plan has it
  known->until = until;
  return true;
}

bool RerunInputs::keep_for_unit(const PlannedRerun& unit, MemoryPlan& plan) const {
  const OpId end = end_of_backward(unit);
  if (end == kNoOp) return false;
  bool changed = false;
  std::set<StorageId> made;
  for (const OpId id : unit.ops)
    for (const Use& use : t_.uses_of(t_.ops[id])) {
      if (use.access == Access::write) made.insert(use.storage);
      if (made.contains(use.storage) || t_.storages[use.storage].preexisting) continue;
      if (std::ranges::binary_search(unit.called, flow_.writers(use.storage).front())) continue;  // handed out
      changed = keep(use.storage, unit, {end, true}, plan) || changed;
    }
  return changed;
}

bool RerunInputs::keep_for_operators(const PlannedRerun& rerun, MemoryPlan& plan) const {
  bool changed = false;
  for (PlannedKeep& keep : plan.keeps) {
    const bool is_for_it_alone =
        uses(rerun, keep.storage, Access::read) && std::ranges::none_of(plan.reruns, [&](const PlannedRerun& other) {
          return &other != &rerun && uses(other, keep.storage, Access::read);
        });
    if (!is_for_it_alone || !(rerun.at < keep.until)) continue;
    keep.until = {rerun.at.op, rerun.at.after};
    changed = true;
  }
  return changed;
}

bool RerunInputs::shorten_keeps_not_handed_out(MemoryPlan& plan) const {
  bool changed = false;
  for (const PlannedRerun& rerun : plan.reruns) {
    if (rerun.called.empty() || rerun.called.front() < rerun.ops.back()) continue;
    for (PlannedKeep& keep : plan.keeps) {
      const auto writers = flow_.writers(keep.storage);
      if (writers.empty() || std::ranges::find(rerun.called, writers.front()) == rerun.called.end()) continue;
      PlanPoint until;
      for (const PlannedRerun& other : plan.reruns) {
        if (!uses(other, keep.storage, Access::read)) continue;
        const OpId end = end_of_backward(other);
        const PlanPoint point{end != kNoOp ? end : other.at.op, true};
        if (until.op == kNoOp || until < point) until = point;
      }
      changed = changed || !(keep.until == until);
      keep.until = until;
    }
  }
  std::erase_if(plan.keeps, [](const PlannedKeep& keep) { return keep.until.op == kNoOp; });
  return changed;
}

}  // namespace memwall
