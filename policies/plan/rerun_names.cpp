#include "policies/plan/rerun_names.h"

#include <algorithm>
#include <set>

#include "policies/plan/plan_timeline.h"
#include "policies/trace/module_blocks.h"
#include "policies/trace/operator_name.h"
#include "policies/trace/parameter_casts.h"
#include "policies/trace/rerun_rules.h"

namespace memwall {
namespace {

bool is_within_one_of(const std::string& module, const std::vector<std::string>& paths) {
  return std::any_of(paths.begin(), paths.end(), [&](const std::string& path) { return is_within(module, path); });
}

bool brings_back(const NamedRerun& rerun, StorageId storage) {
  return std::binary_search(rerun.back.begin(), rerun.back.end(), storage);
}

}  // namespace

RerunNames::RerunNames(const Trace& trace, const Dataflow& flow, const ForwardNames& forward, const MemoryPlan& plan)
    : t_(trace), flow_(flow), forward_(forward), plan_(plan) {
  for (const StorageDecision& d : plan.storages)
    if (moves(d))
      travels_.insert(d.storage);
    else if (!d.drops.empty())
      dropped_.insert(d.storage);
  for (const PlannedKeep& keep : plan.keeps) kept_.insert(keep.storage);
}

// Does the plan drop all that backward needs of the module's inside, as checkpointing it does?
bool RerunNames::is_whole(const std::string& module, const NamedRerun& rerun) const {
  if (forward_.is_list(module)) return false;
  const auto saved = forward_.saved_in(module);
  return std::all_of(saved.begin(), saved.end(),
                     [&](StorageId s) { return brings_back(rerun, s) || forward_.is_read_outside(s, {module}); });
}

// The outermost modules that are dropped whole and hold the makers of all that is brought back, in the order of
// forward; none where there are no such modules.
std::vector<std::string> RerunNames::covering(const NamedRerun& rerun) const {
  std::set<OpId> makers;
  for (const StorageId s : rerun.back)
    for (const OpId writer : flow_.writers(s))
      if (forward_.holds(writer)) makers.insert(writer);
  std::vector<std::string> found;
  for (const OpId maker : makers) {
    const std::string& path = forward_.module_of(maker);
    if (is_within_one_of(path, found)) continue;
    const std::vector<std::string> parts = leading_parts(path);
    const auto whole = std::find_if(parts.begin(), parts.end(),
                                    [&](const std::string& part) { return !part.empty() && is_whole(part, rerun); });
    if (whole == parts.end()) return {};
    std::erase_if(found, [&](const std::string& other) { return is_within(other, *whole); });
    found.push_back(*whole);
  }
  return found;
}

bool RerunNames::is_made_twice(std::size_t i, const std::vector<std::string>& modules, const NamedRerun& rerun) const {
  const auto touches = flow_.touches(rerun.back[i]);
  return std::none_of(touches.begin(), touches.end(), [&](const Touch& touch) {
    return is_behind(touch.op, rerun.dropped_at[i]) && !is_within_one_of(forward_.module_of(touch.op), modules);
  });
}

// Does a later re-run of ops of other modules start from what this one makes?
bool RerunNames::starts_another(StorageId s, const std::vector<std::string>& modules, const NamedRerun& rerun) const {
  return std::any_of(plan_.reruns.begin(), plan_.reruns.end(), [&](const PlannedRerun& other) {
    const bool is_behind = rerun.rerun->at < other.at || (rerun.rerun->at == other.at && rerun.rerun < &other);
    if (!is_behind) return false;
    for (const OpId id : other.ops)
      for (const Use& use : t_.uses_of(t_.ops[id])) {
        if (use.storage != s) continue;
        if (use.access == Access::write) return false;  // it makes that itself
        if (forward_.holds(id) && !is_within_one_of(forward_.module_of(id), modules)) return true;
      }
    return false;
  });
}

// Does a second call of the modules give what the re-run gives? Their results stay, and nothing else is run.
bool RerunNames::can_be_called_again(const std::vector<std::string>& modules, const NamedRerun& rerun) const {
  for (std::size_t i = 0; i < rerun.back.size(); ++i)
    if (forward_.is_read_outside(rerun.back[i], modules) && !is_made_twice(i, modules, rerun)) return false;
  for (const OpId id : rerun.rerun->ops)
    for (const Use& use : t_.uses_of(t_.ops[id]))
      if (use.access == Access::write && dropped_.contains(use.storage) && starts_another(use.storage, modules, rerun))
        return false;
  return std::all_of(rerun.rerun->ops.begin(), rerun.rerun->ops.end(),
                     [&](OpId id) { return is_within_one_of(forward_.module_of(id), modules); });
}

// The innermost module around all ops of the re-run, or, where that only lists others, those of them which hold the
// ops, in the order of forward; none where there is no such module.
std::vector<std::string> RerunNames::common_modules(const NamedRerun& rerun) const {
  std::vector<std::string> parts = leading_parts(forward_.module_of(rerun.rerun->ops.front()));
  std::erase(parts, "");
  for (const OpId id : rerun.rerun->ops)
    std::erase_if(parts, [&](const std::string& part) { return !is_within(forward_.module_of(id), part); });
  if (parts.empty()) return {};
  if (!forward_.is_list(parts.back())) return {parts.back()};
  std::vector<std::string> listed;
  for (const OpId id : rerun.rerun->ops) {
    const std::vector<std::string> inner = leading_parts(forward_.module_of(id));
    const auto below = std::find(inner.begin(), inner.end(), parts.back());
    if (below == inner.end() || below + 1 == inner.end()) return {};
    if (std::find(listed.begin(), listed.end(), below[1]) == listed.end()) listed.push_back(below[1]);
  }
  return listed;
}

bool RerunNames::stand_in_a_row(const std::vector<std::string>& modules) const {
  if (modules.size() < 2) return true;
  std::size_t current = 0, left_out = 0;
  bool begun = false;
  for (OpId id = forward_.pass().begin; id < forward_.pass().backward; ++id) {
    if (!forward_.holds(id)) continue;
    const std::string& module = forward_.module_of(id);
    if (is_within(module, modules[current])) {
      if (left_out > 0) return false;
      begun = true;
    } else if (begun && current + 1 < modules.size() && is_within(module, modules[current + 1]) && left_out == 0) {
      ++current;
    } else if (is_within_one_of(module, modules)) {
      return false;
    } else if (begun) {
      ++left_out;
    }
  }
  return current + 1 == modules.size() && is_handed_on_alone(modules);
}

// A second call of modules goes on until it has made all that autograd saves of them: their last result that is saved
// is made again, too, though the first one may still be there.
bool RerunNames::makes_all_results(const std::vector<std::string>& modules, const std::vector<std::string>& save,
                                   const NamedRerun& rerun) const {
  OpId last = kNoOp;
  for (OpId id = forward_.pass().begin; id < forward_.pass().backward; ++id) {
    if (!forward_.holds(id) || !is_within_one_of(forward_.module_of(id), modules)) continue;
    if (std::find(save.begin(), save.end(), forward_.operator_at(id)) != save.end()) continue;
    for (const Use& use : t_.uses_of(t_.ops[id]))
      if (use.saved && use.access == Access::write && !t_.storages[use.storage].preexisting) last = id;
  }
  const std::vector<OpId>&ops = rerun.rerun->ops, &called = rerun.rerun->called;
  return last == kNoOp || std::binary_search(ops.begin(), ops.end(), last) ||
         std::find(called.begin(), called.end(), last) != called.end();
}

// Behind the op that makes the last result that autograd saves in the modules, or before the one that reads it.
OpId RerunNames::end_of_saves(const std::vector<std::string>& modules) const {
  OpId end = 0;
  for (OpId id = forward_.pass().begin; id < forward_.pass().backward; ++id) {
    if (!forward_.holds(id) || !is_within_one_of(forward_.module_of(id), modules)) continue;
    for (const Use& use : t_.uses_of(t_.ops[id]))
      if (use.saved) end = std::max(end, id + (use.access == Access::write ? 1 : 0));
  }
  return end;
}

// A second call of modules repeats all that they launch up to where it ends, whether anybody needs it or not.
bool RerunNames::repeats_all(const std::vector<std::string>& modules, const std::vector<std::string>& save,
                             const NamedRerun& rerun) const {
  const std::vector<OpId>&ops = rerun.rerun->ops, &called = rerun.rerun->called;
  const OpId end = std::max(ops.back(), end_of_saves(modules));
  for (OpId id = forward_.pass().begin; id < end; ++id) {
    if (!forward_.holds(id) || !runs_on_device(t_.ops[id].kind) || !makes_anything(t_.ops[id], t_)) continue;
    if (!is_within_one_of(forward_.module_of(id), modules) || std::binary_search(ops.begin(), ops.end(), id)) continue;
    const bool is_saved = std::find(save.begin(), save.end(), forward_.operator_at(id)) != save.end();
    if (!is_saved && std::find(called.begin(), called.end(), id) == called.end()) return false;
  }
  return true;
}

// The module whose forward calls it: the one around it that is no list of modules; "" is the model.
std::string RerunNames::caller_of(const std::string& module) const {
  std::string caller = module;
  do {
    const std::size_t dot = caller.rfind('.');
    caller.resize(dot == caller.npos ? 0 : dot);
  } while (!caller.empty() && forward_.is_list(caller));
  return caller;
}

// Does one forward call them, each with what the one before gave? What any of them makes the next alone may use, as a
// whole: who reads a part was called with a view. Another view between them, or a container, a trace does not know.
bool RerunNames::is_handed_on_alone(const std::vector<std::string>& modules) const {
  const std::string caller = caller_of(modules.front());
  const auto has_that_caller = [&](const std::string& module) { return caller_of(module) == caller; };
  if (!std::ranges::all_of(modules, has_that_caller)) return false;
  for (std::size_t i = 0; i + 1 < modules.size(); ++i) {
    const std::vector<std::string> users{modules[i], modules[i + 1]};
    for (OpId id = forward_.pass().begin; id < forward_.pass().backward; ++id) {
      if (!forward_.holds(id) || !is_within(forward_.module_of(id), modules[i])) continue;
      for (const Use& use : t_.uses_of(t_.ops[id]))
        if (use.access == Access::write && !is_cast_of_parameter(t_, flow_, use.storage) &&
            is_within(forward_.module_of(flow_.writers(use.storage).back()), modules[i]) &&
            (forward_.is_read_outside(use.storage, users) || is_read_in_part(use.storage, modules[i + 1])))
          return false;
    }
  }
  return true;
}

// Do the ops of the module that read it move fewer bytes in all than it has, without what they make and their
// parameters? One that takes it apart by itself, as a recurrent layer does step by step, reads all of it.
bool RerunNames::is_read_in_part(StorageId storage, const std::string& module) const {
  Bytes read = 0;
  bool is_read = false;
  const auto is_beside = [&](const Use& use) {
    const StorageKind kind = t_.storages[use.storage].kind;
    if (use.access == Access::write) return kind != StorageKind::workspace;
    return kind == StorageKind::parameter || is_cast_of_parameter(t_, flow_, use.storage);
  };
  for (const Touch& touch : flow_.touches(storage)) {
    const Op& op = t_.ops[touch.op];
    if (!touch.reads || !forward_.holds(touch.op) || !is_within(forward_.module_of(touch.op), module)) continue;
    if (op.bytes == 0) return false;
    is_read = true;
    read += op.bytes;
    for (const Use& use : t_.uses_of(op))
      if (is_beside(use)) read -= t_.storages[use.storage].bytes;
  }
  return is_read && read < t_.storages[storage].bytes;
}

// Operators that the re-run calls again and whose results of the first time it is handed.
std::set<std::string> RerunNames::handed_out(const NamedRerun& rerun) const {
  std::set<std::string> names;
  for (const OpId id : rerun.rerun->called)
    if (id < rerun.rerun->ops.back() && forward_.holds(id)) names.insert(forward_.operator_at(id));
  return names;
}

bool RerunNames::find_saved_operators(const std::vector<std::string>& modules, const NamedRerun& rerun,
                                      std::vector<std::string>& names) const {
  std::set<std::string> again, kept = handed_out(rerun);
  for (const OpId id : rerun.rerun->ops) again.insert(forward_.operator_at(id));
  const std::size_t known = kept.size();
  for (const std::string& module : modules)
    for (const StorageId s : forward_.saved_in(module)) {
      if (brings_back(rerun, s) || forward_.is_read_outside(s, modules)) continue;
      // Selective checkpointing keeps results in a cache of its own, which no hook of autograd sees: they cannot
      // travel.
      if (travels_.contains(s)) return false;
      kept.insert(forward_.operator_at(flow_.writers(s).front()));
    }
  names.assign(kept.begin(), kept.end());
  // A list of what stays that is longer than that of what is run again is not how one would write it, unless the plan
  // says it; and an operator on both lists has no name.
  return (known > 0 || kept.size() <= again.size()) &&
         std::none_of(names.begin(), names.end(), [&](const std::string& name) { return again.contains(name); });
}

// A checkpointed unit holds what it is called with until the end of its backward. Is that there all the same until the
// re-run, where the plan does not ask for the unit?
bool RerunNames::has_its_inputs(const std::vector<std::string>& modules, const NamedRerun& rerun) const {
  for (OpId id = forward_.pass().begin; id < forward_.pass().backward; ++id) {
    if (!forward_.holds(id) || !is_within_one_of(forward_.module_of(id), modules)) continue;
    for (const Use& use : t_.uses_of(t_.ops[id])) {
      const auto writers = flow_.writers(use.storage);
      const bool is_input = use.access == Access::read && !writers.empty() && forward_.holds(writers.front()) &&
                            !is_within_one_of(forward_.module_of(writers.front()), modules);
      if (is_input && (flow_.free(use.storage) < rerun.rerun->at.op || dropped_.contains(use.storage))) return false;
    }
  }
  return true;
}

// Does it change what it has not made? What it fills, bernoulli_ of empty memory, is made by another operator, too.
bool RerunNames::works_in_place(OpId op) const {
  const auto uses = t_.uses_of(t_.ops[op]);
  return operator_of(t_, t_.ops[op]).ends_with('_') || std::any_of(uses.begin(), uses.end(), [&](const Use& use) {
           return use.access == Access::write && (t_.storages[use.storage].preexisting || use.version > 1);
         });
}

// Does the re-run end before the modules do, or with what it brings back?
bool RerunNames::stops_early(const std::vector<std::string>& modules, const NamedRerun& rerun) const {
  const auto last_of = [&](const auto& is_counted) {
    OpId last = 0;
    for (const OpId id : rerun.rerun->ops)
      if (t_.ops[id].use_count > 0 && is_counted(id)) last = std::max(last, id);
    return last;
  };
  const OpId last = last_of([](OpId) { return true; });
  const OpId last_maker = last_of([&](OpId id) {
    const auto uses = t_.uses_of(t_.ops[id]);
    return std::any_of(uses.begin(), uses.end(),
                       [&](const Use& use) { return use.access == Access::write && brings_back(rerun, use.storage); });
  });
  if (last == last_maker) return true;
  for (OpId id = last + 1; id < forward_.pass().backward; ++id)
    if (forward_.holds(id) && t_.ops[id].use_count > 0 && is_within_one_of(forward_.module_of(id), modules))
      return true;
  return false;
}

bool RerunNames::draws_random(const NamedRerun& rerun) const {
  const std::vector<OpId>& ops = rerun.rerun->ops;
  return std::any_of(ops.begin(), ops.end(), [&](OpId id) { return draws_random_numbers(t_.ops[id], t_); });
}

// Units that are treated alike stand together.
RerunPlace RerunNames::add_modules(std::vector<std::string> modules, std::vector<std::string> save,
                                   const NamedRerun& rerun, PlanRealization& realization) {
  const bool early = stops_early(modules, rerun), random = draws_random(rerun);
  units_.insert(units_.end(), modules.begin(), modules.end());
  again_.insert(rerun.rerun->ops.begin(), rerun.rerun->ops.end());
  std::vector<ModuleRecompute>& all = realization.recompute;
  const auto like = std::find_if(all.begin(), all.end(), [&](const ModuleRecompute& other) {
    return other.early_stop == early && other.preserve_rng == random && other.save_operators == save;
  });
  if (like == all.end()) {
    all.push_back({{std::move(modules)}, early, random, std::move(save)});
    return {.recompute = all.size() - 1};
  }
  like->units.push_back(std::move(modules));
  return {.recompute = static_cast<std::size_t>(like - all.begin()), .unit = like->units.size() - 1};
}

RerunPlace RerunNames::add_unnamed(const std::string& reason, const NamedRerun& rerun,
                                   PlanRealization& realization) const {
  Bytes bytes = 0;
  for (const StorageId s : rerun.back) bytes += t_.storages[s].bytes;
  for (UnnamedDecisions& like : realization.unnamed)
    if (like.what == "recompute" && like.reason == reason) {
      like.storages += rerun.back.size();
      like.bytes += bytes;
      return {};
    }
  realization.unnamed.push_back({"recompute", reason, rerun.back.size(), bytes});
  return {};
}

NamedRerunOps RerunNames::ops_of(const PlannedRerun& rerun, const RerunPlace& place,
                                 const PlanRealization& realization) const {
  NamedRerunOps again;
  if (place.lazy != RerunPlace::kNone) again.lazy = place.lazy;
  if (place.recompute != RerunPlace::kNone) {
    again.unit = place.unit;
    for (std::size_t i = 0; i < place.recompute; ++i) *again.unit += realization.recompute[i].units.size();
  }
  for (const OpId id : rerun.ops)
    if (runs_on_device(t_.ops[id].kind)) again.operators.push_back({forward_.module_of(id), forward_.operator_at(id)});
  return again;
}

RerunPlace RerunNames::add(const NamedRerun& rerun, PlanRealization& realization) {
  const std::vector<OpId>& ops = rerun.rerun->ops;
  if (!t_.knowledge.modules) return add_unnamed("The trace does not know modules.", rerun, realization);
  if (!std::all_of(ops.begin(), ops.end(), [&](OpId id) { return forward_.holds(id); }))
    return add_unnamed("It repeats ops that are not of this forward pass.", rerun, realization);
  if (std::any_of(ops.begin(), ops.end(), [&](OpId id) { return again_.contains(id); }))
    return add_unnamed("It repeats ops that another re-run repeats, too.", rerun, realization);
  std::vector<std::string> modules = covering(rerun);
  if (!modules.empty() && handed_out(rerun).empty() && stand_in_a_row(modules) && can_be_called_again(modules, rerun) &&
      makes_all_results(modules, {}, rerun) && repeats_all(modules, {}, rerun))
    return add_modules(std::move(modules), {}, rerun, realization);
  modules = common_modules(rerun);
  std::vector<std::string> save;
  if (!modules.empty() && stand_in_a_row(modules) && can_be_called_again(modules, rerun) &&
      find_saved_operators(modules, rerun, save) && makes_all_results(modules, save, rerun) &&
      repeats_all(modules, save, rerun) && (!handed_out(rerun).empty() || has_its_inputs(modules, rerun)))
    return add_modules(std::move(modules), std::move(save), rerun, realization);
  if (std::any_of(ops.begin(), ops.end(), [&](OpId id) { return forward_.module_of(id).empty(); }))
    return add_unnamed("It repeats ops outside of every module.", rerun, realization);
  if (std::any_of(ops.begin(), ops.end(), [&](OpId id) { return works_in_place(id); }))
    return add_unnamed("It repeats operators that work in place, without the whole of their module.", rerun,
                       realization);
  return add_lazy(rerun, realization);
}

// Operators of which all results are made again stand first, those of which some stay behind them, one by one.
RerunPlace RerunNames::add_lazy(const NamedRerun& rerun, PlanRealization& realization) {
  const std::vector<OpId>& ops = rerun.rerun->ops;
  again_.insert(ops.begin(), ops.end());
  lazy_.insert(ops.begin(), ops.end());
  std::vector<OpId> whole, partly;
  for (const OpId id : ops) (kept_results(id).empty() ? whole : partly).push_back(id);
  std::vector<NamedOperator> names = forward_.named(whole);
  for (const OpId id : partly) {
    names.push_back(forward_.named({id}).front());
    names.back().keeps = kept_results(id);
  }
  realization.lazy_operators.push_back({std::move(names), draws_random(rerun)});
  return {.lazy = realization.lazy_operators.size() - 1};
}

// What backward, or another re-run, finds as the first run has left it. A capture numbers what an operator makes in the
// order in which it returns that; uses stand in the order in which autograd saves them.
std::vector<std::uint32_t> RerunNames::kept_results(OpId op) const {
  std::set<StorageId> made;
  for (const Use& use : t_.uses_of(t_.ops[op]))
    if (use.access == Access::write && !t_.storages[use.storage].preexisting) made.insert(use.storage);
  std::vector<std::uint32_t> kept;
  std::uint32_t number = 0;
  for (const StorageId s : made) {
    const OpId free = flow_.free(s);
    const bool lives_on = free == kNoOp || free >= forward_.pass().backward;
    if (kept_.contains(s) || (lives_on && !dropped_.contains(s))) kept.push_back(number);
    ++number;
  }
  return kept;
}

}  // namespace memwall
