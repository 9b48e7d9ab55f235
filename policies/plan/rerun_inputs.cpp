#include "policies/plan/rerun_inputs.h"

#include <algorithm>
#include <set>
#include <string>

#include "policies/plan/forward_names.h"
#include "policies/plan/plan_timeline.h"
#include "policies/trace/operator_name.h"

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

// Of all that its modules do in that forward, run again or not. kNoOp: they have saved nothing, or the trace does not
// say which nodes run what.
OpId RerunInputs::end_of_backward(const PlannedRerun& unit, const std::vector<ModuleRecompute>& recompute) const {
  const std::vector<std::string>* const modules = modules_around(unit.ops.front(), recompute);
  OpId end = kNoOp;
  const auto extend = [&](OpId id) {
    if (const OpId last = saved_.node_released(id); last != kNoOp && (end == kNoOp || end < last)) end = last;
  };
  for (const std::vector<OpId>* ops : {&unit.ops, &unit.called}) std::ranges::for_each(*ops, extend);
  if (modules == nullptr) return end;
  for (OpId id = unit.ops.front(); id < unit.at.op && t_.ops[id].phase != Phase::backward; ++id)
    if (runs_on_device(t_.ops[id].kind) && is_inside(id, *modules)) extend(id);
  return end;
}

bool RerunInputs::is_inside(OpId op, const std::vector<std::string>& modules) const {
  return std::ranges::any_of(modules,
                             [&](const std::string& path) { return is_within(t_.strings[t_.ops[op].module], path); });
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

bool RerunInputs::keep_for_unit(const PlannedRerun& unit, const std::vector<ModuleRecompute>& recompute,
                                MemoryPlan& plan) const {
  const OpId end = end_of_backward(unit, recompute);
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

bool RerunInputs::keep_for_operators(MemoryPlan& plan, const std::vector<ModuleRecompute>& recompute) const {
  bool changed = false;
  for (PlannedKeep& keep : plan.keeps) {
    PlanPoint until;
    bool is_for_them_alone = true;
    for (const PlannedRerun& rerun : plan.reruns) {
      if (!uses(rerun, keep.storage, Access::read)) continue;
      is_for_them_alone = is_for_them_alone && unit_around(rerun.ops.front(), recompute) == nullptr;
      if (until.op == kNoOp || until < rerun.at) until = {rerun.at.op, rerun.at.after};
    }
    if (until.op == kNoOp || !is_for_them_alone || !(until < keep.until)) continue;
    keep.until = until;
    changed = true;
  }
  return changed;
}

const ModuleRecompute* RerunInputs::unit_around(OpId op, const std::vector<ModuleRecompute>& recompute) const {
  const std::string& module = t_.strings[t_.ops[op].module];
  const auto found = std::ranges::find_if(recompute, [&](const ModuleRecompute& one) {
    return std::ranges::any_of(one.units, [&](const std::vector<std::string>& unit) {
      return std::ranges::any_of(unit, [&](const std::string& path) { return is_within(module, path); });
    });
  });
  return found == recompute.end() ? nullptr : &*found;
}

const std::vector<std::string>* RerunInputs::modules_around(OpId op,
                                                            const std::vector<ModuleRecompute>& recompute) const {
  for (const ModuleRecompute& one : recompute)
    for (const std::vector<std::string>& unit : one.units)
      for (const std::string& path : unit)
        if (is_within(t_.strings[t_.ops[op].module], path)) return &unit;
  return nullptr;
}

bool RerunInputs::is_handed_out(OpId maker, const std::vector<ModuleRecompute>& recompute) const {
  const ModuleRecompute* const unit = unit_around(maker, recompute);
  return unit != nullptr &&
         std::ranges::find(unit->save_operators, operator_of(t_, t_.ops[maker])) != unit->save_operators.end();
}

// By units; the op is kNoOp where single operators alone read it, which hold it without being asked to.
PlanPoint RerunInputs::read_until(StorageId s, const std::vector<ModuleRecompute>& recompute,
                                  const MemoryPlan& plan) const {
  PlanPoint until;
  for (const PlannedRerun& rerun : plan.reruns) {
    if (!uses(rerun, s, Access::read) || unit_around(rerun.ops.front(), recompute) == nullptr) continue;
    const OpId end = end_of_backward(rerun, recompute);
    const PlanPoint point{end != kNoOp ? end : rerun.at.op, true};
    if (until.op == kNoOp || until < point) until = point;
  }
  return until;
}

bool RerunInputs::shorten_keeps_not_handed_out(MemoryPlan& plan, const std::vector<ModuleRecompute>& recompute) const {
  bool changed = false;
  for (PlannedKeep& keep : plan.keeps) {
    const auto writers = flow_.writers(keep.storage);
    if (writers.empty() || is_handed_out(writers.front(), recompute)) continue;
    const auto calls = [&](const PlannedRerun& rerun) {
      return std::ranges::binary_search(rerun.called, writers.front());
    };
    const PlanPoint until = read_until(keep.storage, recompute, plan);
    const bool is_of_unit = unit_around(writers.front(), recompute) != nullptr;
    const auto repeats = [&](const PlannedRerun& rerun) {
      return std::ranges::binary_search(rerun.ops, writers.front());
    };
    const bool is_as_planned = until.op != kNoOp ? !is_of_unit && std::ranges::none_of(plan.reruns, calls)
                                                 : std::ranges::any_of(plan.reruns, repeats);
    if (is_as_planned) continue;
    changed = changed || !(keep.until == until);
    keep.until = until;
  }
  std::erase_if(plan.keeps, [](const PlannedKeep& keep) { return keep.until.op == kNoOp; });
  for (PlannedRerun& rerun : plan.reruns)
    if (!rerun.called.empty() && unit_around(rerun.ops.front(), recompute) == nullptr) {
      rerun.called.clear();
      changed = true;
    }
  return changed;
}

// Is a module of the unit called with it, or with what has it inside? That need not be read by what runs again.
bool RerunInputs::is_input(StorageId s, const std::vector<std::string>& modules, OpId before) const {
  const auto inside = [&](OpId id) { return is_inside(id, modules); };
  const auto reads_it = [&](const Touch& touch) { return touch.reads && touch.op < before && inside(touch.op); };
  return std::ranges::none_of(flow_.writers(s), inside) && std::ranges::any_of(flow_.touches(s), reads_it);
}

bool RerunInputs::hold_inputs_of_unit(const PlannedRerun& unit, const std::vector<ModuleRecompute>& recompute,
                                      MemoryPlan& plan) const {
  const std::vector<std::string>* const modules = modules_around(unit.ops.front(), recompute);
  if (modules == nullptr) return false;
  const OpId end = end_of_backward(unit, recompute);
  if (end == kNoOp) return false;
  const PlanPoint until{end, true};
  bool changed = false;
  for (StorageDecision& d : plan.storages) {
    if (moves(d) || uses(unit, d.storage, Access::write) || !is_input(d.storage, *modules, unit.at.op)) continue;
    if (flow_.free(d.storage) <= end) continue;
    for (PlannedDrop& drop : d.drops) {
      const bool is_early = unit.at < drop.at && drop.at < until;
      const bool is_made_meanwhile = std::ranges::any_of(plan.reruns, [&](const PlannedRerun& other) {
        return drop.at < other.at && other.at < until && uses(other, d.storage, Access::write);
      });
      if (!is_early || is_made_meanwhile) continue;
      drop.at = until;
      changed = true;
    }
  }
  return changed;
}

}  // namespace memwall
