#include "policies/plan/plan_realization.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "policies/plan/forward_names.h"
#include "policies/plan/hook_moves.h"
#include "policies/plan/named_parameters.h"
#include "policies/plan/plan_timeline.h"
#include "policies/plan/rerun_names.h"

namespace memwall {
namespace {

constexpr std::size_t kNone = static_cast<std::size_t>(-1);

// The last drop before the point; null: none, or it was fetched since.
const PlannedDrop* standing_drop(const StorageDecision& d, const PlanPoint& at) {
  const PlannedDrop* drop = nullptr;
  for (const PlannedDrop& candidate : d.drops)
    if (candidate.at < at) drop = &candidate;
  for (const PlannedFetch& fetch : d.fetches)
    if (drop != nullptr && drop->at < fetch.at && fetch.at < at) return nullptr;
  return drop;
}

class Realization {
 public:
  Realization(const MemoryPlan& plan, const Trace& trace, const Dataflow& flow)
      : plan_(plan),
        t_(trace),
        flow_(flow),
        saved_(trace, flow),
        holds_(trace, flow),
        passes_(passes(trace)),
        decision_of_(trace.storages.size(), kNone) {
    for (std::size_t j = 0; j < plan.storages.size(); ++j) decision_of_[plan.storages[j].storage] = j;
    is_named_.assign(plan.storages.size(), false);
    has_name_.assign(plan.storages.size(), false);
    rerun_has_name_.assign(plan.reruns.size(), false);
    find_brought_back();
  }

  RealizedPlan run_for_decisions() {
    RealizedPlan all{run(), {}, {}};
    all.storages = std::move(has_name_);
    all.reruns = std::move(rerun_has_name_);
    return all;
  }

  PlanRealization run() {
    PlanRealization all = passes_.empty() ? PlanRealization{} : of_forward(passes_.front());
    const PlanRealization first = all;
    for (std::size_t p = 1; p < passes_.size(); ++p)
      if (of_forward(passes_[p]) != first)
        all.unnamed.push_back({"forward",
                               fmt::format("Forward {} of {} is planned otherwise than the first; a program cannot "
                                           "tell them apart.",
                                           p + 1, passes_.size()),
                               0, 0});
    all.forwards = static_cast<std::uint32_t>(passes_.size());
    const bool are_profiler_names = !passes_.empty() && ForwardNames(t_, flow_, passes_.front()).are_profiler_names();
    if (t_.knowledge.modules && !are_profiler_names) all.parameters = named_parameters(t_);
    if (are_profiler_names)
      all.unnamed.push_back({"modules",
                             "Modules have the profiler's names, of class and number (Linear_1), not the model's own; "
                             "a program must find them by their order.",
                             0, 0});
    for (NamedOffload& offload : all.offload) count_in_flight(offload);
    add_homes(all);
    add_rest(all);
    return all;
  }

 private:
  const Storage& storage(const StorageDecision& d) const { return t_.storages[d.storage]; }

  // --- what each re-run brings back

  void find_brought_back() {
    for (const PlannedRerun& rerun : plan_.reruns) reruns_.push_back({&rerun, {}, {}});
    std::stable_sort(reruns_.begin(), reruns_.end(),
                     [](const NamedRerun& a, const NamedRerun& b) { return a.rerun->at < b.rerun->at; });
    std::map<StorageId, const PlannedDrop*> undone;
    for (NamedRerun& again : reruns_) {
      std::map<StorageId, PlanPoint> back;
      for (const OpId id : again.rerun->ops)
        for (const Use& use : t_.uses_of(t_.ops[id])) {
          if (use.access != Access::write || decision_of_[use.storage] == kNone) continue;
          const PlannedDrop* const drop = standing_drop(plan_.storages[decision_of_[use.storage]], again.rerun->at);
          if (drop == nullptr || !is_used_behind(use.storage, again.rerun->at)) continue;
          if (const auto [known, first] = undone.try_emplace(use.storage, drop); !first) {
            if (known->second == drop && !back.contains(use.storage))
              continue;  // an earlier re-run has brought it back
            known->second = drop;
          }
          back.emplace(use.storage, drop->at);
        }
      for (const auto& [s, at] : back) {
        again.back.push_back(s);
        again.dropped_at.push_back(at);
      }
    }
    // In the order of forward from here on.
    std::stable_sort(reruns_.begin(), reruns_.end(), [](const NamedRerun& a, const NamedRerun& b) {
      return a.rerun->ops.front() < b.rerun->ops.front();
    });
  }

  bool is_used_behind(StorageId s, const PlanPoint& at) const {
    const auto touches = flow_.touches(s);
    return !touches.empty() && is_behind(touches.back().op, at);
  }

  // --- one forward and its backward

  PlanRealization of_forward(const Pass& pass) {
    const ForwardNames forward(t_, flow_, pass);
    RerunNames names(t_, flow_, forward, plan_);
    PlanRealization part;
    std::vector<std::pair<const PlannedRerun*, RerunPlace>> placed;
    for (const NamedRerun& again : reruns_) {
      if (!forward.holds(again.rerun->ops.front())) continue;
      placed.emplace_back(again.rerun, RerunPlace{});
      if (again.back.empty()) continue;
      for (const StorageId s : again.back) is_named_[decision_of_[s]] = true;
      const RerunPlace place = placed.back().second = names.add(again, part);
      if (place.recompute == RerunPlace::kNone && place.lazy == RerunPlace::kNone) continue;
      for (const StorageId s : again.back) has_name_[decision_of_[s]] = true;
      rerun_has_name_[static_cast<std::size_t>(again.rerun - plan_.reruns.data())] = true;
    }
    std::stable_sort(placed.begin(), placed.end(),
                     [](const auto& a, const auto& b) { return a.first->at < b.first->at; });
    for (const auto& [rerun, place] : placed) part.runs_again.push_back(names.ops_of(*rerun, place, part));
    std::optional<HookedStorages> hooked;
    if (saved_.known()) hooked.emplace(t_, flow_, saved_, holds_, pass, plan_, names.units());
    for (std::uint8_t tier = 0; tier < plan_.tiers.size(); ++tier)
      add_offload(forward, tier, hooked ? &*hooked : nullptr, part);
    name_drops(forward, names);
    return part;
  }

  // What autograd holds and nobody reads goes with the checkpointed module around it, or with the operator that is run
  // again for its other results.
  void name_drops(const ForwardNames& forward, const RerunNames& names) {
    for (std::size_t j = 0; j < plan_.storages.size(); ++j) {
      const auto writers = flow_.writers(plan_.storages[j].storage);
      if (is_named_[j] || moves(plan_.storages[j]) || writers.empty() || !forward.holds(writers.front())) continue;
      is_named_[j] = has_name_[j] =
          std::all_of(writers.begin(), writers.end(), [&](OpId id) { return names.is_lazy(id); }) ||
          std::any_of(names.units().begin(), names.units().end(),
                      [&](const std::string& unit) { return is_within(forward.module_of(writers.front()), unit); });
    }
  }

  bool travels_to(const StorageDecision& d, std::uint8_t tier) const {
    return d.home == StorageDecision::kDevice && !d.taken_away && !d.copies.empty() && d.copies.front().tier == tier;
  }

  // `hooked`: null where the trace does not say what autograd saves.
  void add_offload(const ForwardNames& forward, std::uint8_t tier, const HookedStorages* hooked,
                   PlanRealization& part) {
    NamedOffload offload{.tier = tier};
    std::vector<StorageId> sent;
    std::vector<const StorageDecision*> decisions;
    for (const StorageId s : forward.saved()) {
      const std::size_t j = decision_of_[s];
      if (j == kNone || !travels_to(plan_.storages[j], tier)) continue;
      sent.push_back(s);
      decisions.push_back(&plan_.storages[j]);
      is_named_[j] = true;
      offload.bytes += t_.storages[s].bytes;
      offload.min_bytes = sent.size() == 1 ? t_.storages[s].bytes : std::min(offload.min_bytes, t_.storages[s].bytes);
    }
    if (sent.empty()) return;
    offload.storages = sent.size();
    offload.first =
        are_first(forward, sent, offload.min_bytes) ? std::optional<std::uint64_t>(sent.size()) : std::nullopt;
    name_makers(forward, sent, offload, hooked == nullptr ? &part.unnamed : nullptr);
    if (hooked != nullptr) {
      const HookMoves moves(t_, saved_, *hooked, plan_.tiers);
      moves.name(decisions, forward, offload, part.unnamed);
      for (const StorageDecision* d : decisions) has_name_[decision_of_[d->storage]] = moves.why_not(*d).empty();
    }
    part.offload.push_back(std::move(offload));
  }

  // Is what stays, of at least `min_bytes`, saved, or used in forward for the last time, behind all that goes? What
  // another decision takes is not counted.
  bool are_first(const ForwardNames& forward, const std::vector<StorageId>& sent, Bytes min_bytes) const {
    OpId last_sent = 0;
    for (const StorageId s : sent) last_sent = std::max(last_sent, forward.saved_at(s));
    return std::all_of(forward.saved().begin(), forward.saved().end(), [&](StorageId s) {
      return decision_of_[s] != kNone || t_.storages[s].bytes < min_bytes || forward.saved_at(s) >= last_sent;
    });
  }

  // `unnamed`: of operators that do not tell which of their results travel; null where hooks tell that by number.
  void name_makers(const ForwardNames& forward, const std::vector<StorageId>& sent, NamedOffload& offload,
                   std::vector<UnnamedDecisions>* unnamed) const {
    std::map<OpId, std::vector<StorageId>> made;
    for (const StorageId s : sent) made[flow_.writers(s).front()].push_back(s);
    std::vector<OpId> makers;
    for (const auto& [maker, storages] : made) makers.push_back(maker);
    std::map<std::pair<std::string, std::string>, std::size_t> places;
    // An operator of several calls of which one makes nothing for backward: `calls` say so, although all that there is
    // travels.
    for (NamedOperator& name : forward.named(makers)) {
      places[{name.module, name.name}] = offload.saved.size();
      offload.saved.push_back({std::move(name)});
    }
    UnnamedDecisions divided{"offload",
                             "Of an operator some results travel and others as large stay; names of operators do not "
                             "tell which."};
    for (const auto& [maker, storages] : made) {
      NamedStorages& row = offload.saved[places.at({forward.module_of(maker), forward.operator_at(maker)})];
      row.storages += storages.size();
      for (const StorageId s : storages) row.bytes += t_.storages[s].bytes;
      if (!sends_a_part(forward, maker, offload.min_bytes)) continue;
      divided.storages += storages.size();
      for (const StorageId s : storages) divided.bytes += t_.storages[s].bytes;
    }
    if (unnamed == nullptr) return;
    if (divided.storages > 0) unnamed->push_back(std::move(divided));
    add_outside(offload, *unnamed);
  }

  void add_outside(const NamedOffload& offload, std::vector<UnnamedDecisions>& unnamed) const {
    UnnamedDecisions outside{"offload", t_.knowledge.modules
                                            ? "They are made outside of every module; operators alone name them."
                                            : "The trace does not know modules; operators alone name them."};
    for (const NamedStorages& row : offload.saved) {
      if (!row.made_by.module.empty()) continue;
      outside.storages += row.storages;
      outside.bytes += row.bytes;
    }
    if (outside.storages > 0) unnamed.push_back(std::move(outside));
  }

  bool sends_a_part(const ForwardNames& forward, OpId maker, Bytes min_bytes) const {
    const auto uses = t_.uses_of(t_.ops[maker]);
    return std::any_of(uses.begin(), uses.end(), [&](const Use& use) {
      return use.access == Access::write && forward.is_saved(use.storage) && decision_of_[use.storage] == kNone &&
             t_.storages[use.storage].bytes >= min_bytes && flow_.writers(use.storage).front() == maker;
    });
  }

  // --- how many are under way at once

  void count_in_flight(NamedOffload& offload) const {
    std::vector<std::pair<PlanPoint, int>> leaving, arriving;
    for (const StorageDecision& d : plan_.storages) {
      if (!travels_to(d, offload.tier)) continue;
      for (const PlannedCopy& copy : d.copies) {
        const auto drop = std::find_if(d.drops.begin(), d.drops.end(),
                                       [&](const PlannedDrop& candidate) { return copy.at < candidate.at; });
        if (drop != d.drops.end()) add_interval(copy.at, drop->at, leaving);
      }
      for (const PlannedFetch& fetch : d.fetches) {
        const auto touches = flow_.touches(d.storage);
        const auto use = std::find_if(touches.begin(), touches.end(),
                                      [&](const Touch& touch) { return is_behind(touch.op, fetch.at); });
        if (use != touches.end()) add_interval(fetch.at, {use->op, false, 0xffffffff}, arriving);
      }
    }
    offload.buffers = most_at_once(leaving);
    offload.ahead = most_at_once(arriving);
  }

  static void add_interval(const PlanPoint& begin, const PlanPoint& end,
                           std::vector<std::pair<PlanPoint, int>>& changes) {
    changes.emplace_back(begin, 1);
    changes.emplace_back(end, -1);
  }

  static std::uint32_t most_at_once(std::vector<std::pair<PlanPoint, int>> changes) {
    std::sort(changes.begin(), changes.end());
    int now = 0, most = 0;
    for (const auto& [at, change] : changes) most = std::max(most, now += change);
    return static_cast<std::uint32_t>(most);
  }

  // --- parameters, gradients, optimizer states

  static bool has_home(StorageKind kind) {
    return kind == StorageKind::parameter || kind == StorageKind::gradient || kind == StorageKind::optimizer_state;
  }

  void add_homes(PlanRealization& all) {
    std::map<std::tuple<StorageKind, std::uint8_t, bool>, std::vector<StorageId>> homes;
    for (std::size_t j = 0; j < plan_.storages.size(); ++j) {
      const StorageDecision& d = plan_.storages[j];
      const bool lives_there = d.home != StorageDecision::kDevice;
      const bool is_held = d.held != StorageDecision::kDevice;
      if (!has_home(storage(d).kind) || d.taken_away || (!lives_there && !is_held && d.copies.empty())) continue;
      const std::uint8_t tier = lives_there ? d.home : is_held ? d.held : d.copies.front().tier;
      homes[{storage(d).kind, tier, lives_there}].push_back(d.storage);
      is_named_[j] = true;
    }
    for (const auto& [key, storages] : homes) {
      const auto& [kind, tier, lives_there] = key;
      NamedHome home{.tier = tier, .kind = kind, .lives_there = lives_there, .storages = storages.size()};
      const auto total = std::count_if(t_.storages.begin(), t_.storages.end(), [&, k = kind](const Storage& s) {
        return s.kind == k && t_.places[s.place] == "hbm";
      });
      home.all = storages.size() == static_cast<std::size_t>(total);
      for (const StorageId s : storages) {
        home.bytes += t_.storages[s].bytes;
        if (!home.all) home.names.push_back(t_.strings[t_.storages[s].label]);
      }
      all.homes.push_back(std::move(home));
    }
  }

  // --- what has no name

  void add_rest(PlanRealization& all) const {
    std::map<std::pair<std::string, std::string>, UnnamedDecisions> rest;
    for (std::size_t j = 0; j < plan_.storages.size(); ++j) {
      if (is_named_[j]) continue;
      const StorageDecision& d = plan_.storages[j];
      const auto [what, reason] = why_unnamed(d);
      UnnamedDecisions& row = rest.try_emplace({what, reason}, UnnamedDecisions{what, reason}).first->second;
      ++row.storages;
      row.bytes += storage(d).bytes;
    }
    for (auto& [key, row] : rest) all.unnamed.push_back(std::move(row));
  }

  static std::pair<std::string, std::string> why_unnamed(const StorageDecision& d) {
    if (d.taken_away) return {"drop", "An op of the program copies the content away by itself."};
    if (!d.copies.empty() || d.home != StorageDecision::kDevice || d.held != StorageDecision::kDevice)
      return {"offload", "It is neither made in forward for backward, nor a parameter, gradient or optimizer state."};
    return {"drop", "Nobody uses it again, and no checkpointed module holds it."};
  }

  const MemoryPlan& plan_;
  const Trace& t_;
  const Dataflow& flow_;
  const SavedStorages saved_;
  const ForwardHolds holds_;
  const std::vector<Pass> passes_;
  std::vector<std::size_t> decision_of_;  // by storage
  std::vector<bool> is_named_;            // by decision: `unnamed` says nothing of it, or has done so
  // By decision and re-run: a program can act on its name. Homes are left aside.
  std::vector<bool> has_name_, rerun_has_name_;
  std::vector<NamedRerun> reruns_;        // in the order of forward
};

}  // namespace

PlanRealization realization_of(const MemoryPlan& plan, const Trace& trace, const Dataflow& flow) {
  return Realization(plan, trace, flow).run();
}

RealizedPlan realized_plan(const MemoryPlan& plan, const Trace& trace, const Dataflow& flow) {
  return Realization(plan, trace, flow).run_for_decisions();
}

}  // namespace memwall
