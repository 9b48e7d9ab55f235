#include "policies/plan/hooked_storages.h"

#include <algorithm>

#include "policies/plan/forward_names.h"
#include "policies/plan/plan_timeline.h"
#include "policies/trace/rerun_rules.h"

namespace memwall {

HookedStorages::HookedStorages(const Trace& trace, const Dataflow& flow, const SavedStorages& saved,
                               const ForwardHolds& holds, const Pass& pass, const MemoryPlan& plan,
                               const std::vector<std::string>& unit_modules)
    : t_(trace), flow_(flow), saved_(saved), holds_(holds), pass_(pass), plan_(plan), unit_modules_(unit_modules) {
  for (const StorageDecision& d : plan.storages)
    if (!moves(d) && !d.drops.empty() && d.drops.front().at.op < pass.backward) gone_.insert(d.storage);
  add_units_of_plan();
  add_units_of_trace();
  find_saves();
  for (const auto& [storage, point] : saved_at_) {
    all_.push_back({storage, point});
    complete(all_.back());
  }
  std::stable_sort(all_.begin(), all_.end(),
                   [](const HookedStorage& a, const HookedStorage& b) { return a.saved < b.saved; });
  first_node_ = saved.first_node_from(pass.backward, pass.end);
}

void HookedStorages::add_units_of_plan() {
  for (const PlannedRerun& rerun : plan_.reruns) {
    if (rerun.ops.front() < pass_.begin || rerun.ops.back() >= pass_.backward) continue;
    const bool is_unit = std::all_of(rerun.ops.begin(), rerun.ops.end(), [&](OpId id) {
      return std::any_of(unit_modules_.begin(), unit_modules_.end(),
                         [&](const std::string& module) { return is_within(t_.strings[t_.ops[id].module], module); });
    });
    Unit unit{rerun.ops, rerun.ops.front(), rerun.ops.back(), rerun.at.op};
    if (!is_unit) {  // hooks see the operators as they are, and hold what these start from
      each_input(unit.ops, unit.end, [&](StorageId s, std::size_t) { ask(s, rerun.at.op); });
      continue;
    }
    if (!rerun.called.empty()) {
      unit.begin = std::min(unit.begin, rerun.called.front());
      unit.end = std::max(unit.end, rerun.called.back());
    }
    unit.begin = call_of(unit.begin);
    add_unit(std::move(unit));
  }
}

// The first op of the call of the unit's module that holds `op`: what selective checkpointing keeps is called there,
// too, though nothing runs it again.
OpId HookedStorages::call_of(OpId op) const {
  const auto is_around = [&](const std::string& module) { return is_within(t_.strings[t_.ops[op].module], module); };
  const auto unit = std::find_if(unit_modules_.begin(), unit_modules_.end(), is_around);
  if (unit == unit_modules_.end()) return op;
  OpId begin = op;
  for (OpId id = op; id-- > pass_.begin;) {
    if (!runs_on_device(t_.ops[id].kind)) continue;
    if (!is_within(t_.strings[t_.ops[id].module], *unit)) break;
    begin = id;
  }
  return begin;
}

// What a policy before has written: ops of backward that repeat ascending ops of forward, behind marks that repeat the
// ops with which the unit begins or ends where those are handed what they made (RerunWriter).
void HookedStorages::add_units_of_trace() {
  Unit unit, handed;
  for (OpId id = pass_.backward; id < pass_.end; ++id) {
    const Op& op = t_.ops[id];
    const bool is_mark = op.kind == OpKind::mark && repeats(op);
    if (!runs_on_device(op.kind) && !is_mark) continue;
    const bool is_again = repeats(op) && op.source < pass_.backward;
    if (!unit.ops.empty() && (!is_again || is_mark || op.source <= unit.ops.back())) add_unit(std::exchange(unit, {}));
    if (!is_again) {
      handed = {};
    } else if (is_mark) {
      handed.begin = std::min(handed.begin, op.source);
      handed.end = handed.end == kNoOp ? op.source : std::max(handed.end, op.source);
    } else {
      if (unit.ops.empty()) unit = std::exchange(handed, {}), unit.position = id;
      unit.ops.push_back(op.source);
      unit.begin = std::min(unit.begin, op.source);
      unit.end = unit.end == kNoOp ? op.source : std::max(unit.end, op.source);
    }
  }
  if (!unit.ops.empty()) add_unit(std::move(unit));
}

// Its inputs: what its ops read and do not make, and what was there before it. It begins with what its first module
// counts, which a re-run leaves out.
void HookedStorages::add_unit(Unit unit) {
  for (OpId id = unit.begin; id-- > pass_.begin;) {
    if (!runs_on_device(t_.ops[id].kind)) continue;
    if (t_.ops[id].module != t_.ops[unit.ops.front()].module || makes_anything(t_.ops[id], t_)) break;
    unit.begin = id;
  }
  std::vector<OpId> ops;  // with those whose results of the first time a re-run is handed: it calls them all the same
  for (OpId id = unit.begin; id <= unit.end; ++id)
    if (runs_on_device(t_.ops[id].kind)) ops.push_back(id);
  each_input(ops, unit.begin, [&](StorageId s, std::size_t argument) {
    save(s, {{unit.begin, false}, argument});
    ask(s, unit.position);
  });
  units_.push_back(std::move(unit));
}

void HookedStorages::ask(StorageId storage, OpId position) {
  if (position == kNoOp) return;
  const auto [asked, is_new] = rerun_asks_.try_emplace(storage, position);
  asked->second = std::min(asked->second, position);
}

template <typename Take>
void HookedStorages::each_input(const std::vector<OpId>& ops, OpId begin, Take take) const {
  std::set<StorageId> made;
  for (const OpId id : ops) {
    const auto uses = t_.uses_of(t_.ops[id]);
    for (std::size_t i = 0; i < uses.size(); ++i) {
      const StorageId s = uses[i].storage;
      const auto writers = flow_.writers(s);
      if (uses[i].access == Access::write)
        made.insert(s);
      else if (!made.contains(s) && (writers.empty() || writers.front() < begin))
        take(s, i);
    }
  }
}

bool HookedStorages::is_inside(OpId op) const {
  const std::string& module = t_.strings[t_.ops[op].module];
  return std::any_of(units_.begin(), units_.end(),
                     [&](const Unit& unit) { return unit.begin <= op && op <= unit.end; }) ||
         std::any_of(unit_modules_.begin(), unit_modules_.end(),
                     [&](const std::string& unit) { return is_within(module, unit); });
}

// Made by forward on the device, and there until backward: autograd holds it.
bool HookedStorages::is_shown(StorageId s) const {
  const OpId free = flow_.free(s);
  return t_.storages[s].bytes > 0 && t_.places[t_.storages[s].place] == "hbm" && !gone_.contains(s) &&
         (free == kNoOp || free >= pass_.backward) && is_forward_intermediate(t_, flow_, pass_, s);
}

void HookedStorages::save(StorageId storage, SavePoint point) {
  if (!is_shown(storage)) return;
  const auto [known, is_new] = saved_at_.try_emplace(storage, point);
  if (!is_new && point < known->second) known->second = point;
}

OpId HookedStorages::begin_of(OpId node) const {
  OpId row = node;  // the first of the ops that end with it and launch nothing
  while (row > 0 && !runs_on_device(t_.ops[row - 1].kind)) --row;
  OpId begin = node;
  for (const PlannedRerun& rerun : plan_.reruns)
    if (!rerun.at.after && rerun.at.op >= row) begin = std::min(begin, rerun.at.op);
  return begin;
}

void HookedStorages::find_saves() {
  for (OpId id = pass_.begin; id < pass_.backward; ++id) {
    const auto uses = t_.uses_of(t_.ops[id]);
    if (std::none_of(uses.begin(), uses.end(), [](const Use& use) { return use.saved; }) || is_inside(id)) continue;
    for (std::size_t i = 0; i < uses.size(); ++i)
      if (uses[i].saved) save(uses[i].storage, {{id, uses[i].access == Access::write}, i});
  }
}

void HookedStorages::complete(HookedStorage& hooked) const {
  for (const Touch& touch : flow_.touches(hooked.storage)) {
    if (touch.op < pass_.backward) {
      hooked.last_use = touch.op;
      if (touch.writes) hooked.last_write = touch.op;
    } else if (hooked.asked == kNoOp && touch.op < pass_.end && flow_.phases().kind(touch.op) == RunKind::backward) {
      hooked.asked = saved_.first_of_node(touch.op);
    }
  }
  const OpId held = holds_.held_until(hooked.storage);
  hooked.held = held == kNoOp ? hooked.last_use : held;
  hooked.back_by = hooked.asked;
  const auto rerun = rerun_asks_.find(hooked.storage);
  if (rerun == rerun_asks_.end() || rerun->second >= hooked.asked) return;
  hooked.back_by = rerun->second;
  hooked.asked = saved_.first_node_from(rerun->second, hooked.asked);
}

}  // namespace memwall
