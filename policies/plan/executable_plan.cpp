#include "policies/plan/executable_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "policies/plan/forward_holds.h"
#include "policies/plan/forward_names.h"
#include "policies/plan/hook_moves.h"
#include "policies/plan/plan_check.h"
#include "policies/plan/plan_realization.h"
#include "policies/plan/plan_timeline.h"
#include "policies/plan/rerun_demand.h"
#include "policies/plan/rerun_inputs.h"
#include "policies/trace/rerun_rules.h"
#include "sim/human_text.h"

namespace memwall {
namespace {

class Restriction {
 public:
  Restriction(MemoryPlan plan, const Trace& trace, const Dataflow& flow)
      : plan_(std::move(plan)),
        t_(trace),
        flow_(flow),
        saved_(trace, flow),
        holds_(trace, flow),
        inputs_(trace, flow, saved_) {}

  RestrictedPlan run() {
    if (plan_.storages.empty() && plan_.reruns.empty()) return {std::move(plan_), "", ""};
    RealizedPlan all = realized_plan(plan_, t_, flow_);
    if (std::string refusal = refusal_of(all); !refusal.empty()) return {{}, std::move(refusal), ""};
    leave_out_statistics();
    // What is left out may have been all that another re-run was for.
    while (leave_out_nameless(all) || keep_what_backward_reads(all)) all = realized_plan(plan_, t_, flow_);
    changed_ = inputs_.shorten_keeps_not_handed_out(plan_, all.names.recompute) || changed_;
    hold();
    hand_to_nodes();
    move_to_hooks();
    if (changed_ || !fetched_.empty()) put_in_order();
    return settled();
  }

 private:
  // --- what no part of the plan can help

  std::string refusal_of(const RealizedPlan& all) const {
    for (const UnnamedDecisions& unnamed : all.names.unnamed)
      if (unnamed.what == "modules" || unnamed.what == "forward") return unnamed.reason;
    if (!t_.knowledge.modules) return "The trace does not know modules, by which PyTorch would be told what to do.";
    const bool any_moves =
        std::any_of(plan_.storages.begin(), plan_.storages.end(), [](const StorageDecision& d) { return moves(d); });
    if (any_moves && !saved_.known())
      return "The trace does not say what autograd saves, which hooks would move; memwall_capture says it.";
    return "";
  }

  // --- re-runs

  // PyTorch would write running statistics a second time; who executes the plan keeps it from that.
  void leave_out_statistics() {
    for (PlannedRerun& rerun : plan_.reruns) {
      const auto counts_only = [&](OpId id) {
        return !makes_anything(t_.ops[id], t_) &&
               std::ranges::any_of(t_.uses_of(t_.ops[id]), [](const Use& use) { return use.access == Access::write; });
      };
      if (std::all_of(rerun.ops.begin(), rerun.ops.end(), counts_only)) continue;
      counters_ += static_cast<std::size_t>(std::erase_if(rerun.ops, counts_only));
    }
  }

  // Has it left out a re-run?
  bool leave_out_nameless(const RealizedPlan& all) {
    std::set<StorageId> started_from;
    std::vector<PlannedRerun> reruns;
    for (std::size_t i = 0; i < plan_.reruns.size(); ++i)
      if (all.reruns[i]) reruns.push_back(std::move(plan_.reruns[i]));
    const std::size_t left_out = plan_.reruns.size() - reruns.size();
    reruns_left_out_ += left_out;
    plan_.reruns = std::move(reruns);
    std::vector<StorageDecision> storages;
    for (std::size_t j = 0; j < plan_.storages.size(); ++j) {
      StorageDecision& d = plan_.storages[j];
      if (all.storages[j] || can_be_moved(d))
        storages.push_back(std::move(d));
      else
        leave_out(d.storage, moves(d) ? "hooks do not see them" : "no module or operator names them");
    }
    plan_.storages = std::move(storages);
    if (left_out == 0) return false;
    for (StorageDecision& d : plan_.storages) leave_out_drops(d);
    std::erase_if(plan_.storages, [](const StorageDecision& d) { return !moves(d) && d.drops.empty(); });
    for (const PlannedRerun& rerun : plan_.reruns) {
      std::set<StorageId> made;
      for (const OpId id : rerun.ops)
        for (const Use& use : t_.uses_of(t_.ops[id]))
          if (use.access == Access::write)
            made.insert(use.storage);
          else if (!made.contains(use.storage))
            started_from.insert(use.storage);
    }
    std::erase_if(plan_.keeps, [&](const PlannedKeep& keep) { return !started_from.contains(keep.storage); });
    return true;
  }

  // What single operators make goes in forward, or stays until the program gives it back: nothing tells a program that
  // a node of backward has been the last but one to read it. Has it changed the plan?
  bool keep_what_backward_reads(const RealizedPlan& all) {
    std::set<StorageId> stay;
    for (const PlannedRerun& rerun : plan_.reruns) {
      if (is_unit(rerun, unit_modules(all.names))) continue;
      for (const StorageDecision& d : plan_.storages) {
        if (moves(d) || d.drops.empty() || !inputs_.uses(rerun, d.storage, Access::write)) continue;
        if (!is_in_its_forward(d.storage, d.drops.front().at.op) && d.drops.front().at < rerun.at)
          stay.insert(d.storage);
      }
    }
    for (const StorageId s : stay) leave_out(s, "backward reads them before they are dropped");
    std::erase_if(plan_.storages, [&](const StorageDecision& d) { return stay.contains(d.storage); });
    return !stay.empty();
  }

  // Those behind re-runs that are left out, or are for nothing then: the storage is dropped already.
  void leave_out_drops(StorageDecision& d) const {
    if (moves(d)) return;
    std::vector<PlannedDrop> drops;
    PlanPoint gone{flow_.free(d.storage), false};  // by the program, or the drop before
    for (const PlannedDrop& drop : d.drops) {
      if (gone.op != kNoOp && !(drop.at < gone && drops.empty()) && !is_made_between(d.storage, gone, drop.at))
        continue;
      drops.push_back(drop);
      gone = drop.at;
    }
    d.drops = std::move(drops);
  }

  // Is it made again there, and used behind that, by an op or by what another re-run starts from?
  bool is_made_between(StorageId s, const PlanPoint& begin, const PlanPoint& end) const {
    const auto is_used = [&](const PlannedRerun& by) {
      const auto touches = flow_.touches(s);
      return std::any_of(touches.begin(), touches.end(),
                         [&](const Touch& touch) { return is_behind(touch.op, by.at) && !is_behind(touch.op, end); }) ||
             std::any_of(plan_.reruns.begin(), plan_.reruns.end(), [&](const PlannedRerun& other) {
               return by.at < other.at && other.at < end && inputs_.uses(other, s, Access::read) &&
                      !inputs_.uses(other, s, Access::write);
             });
    };
    return std::any_of(plan_.reruns.begin(), plan_.reruns.end(), [&](const PlannedRerun& rerun) {
      return begin < rerun.at && rerun.at < end && inputs_.uses(rerun, s, Access::write) && is_used(rerun);
    });
  }

  bool can_be_moved(const StorageDecision& d) const {
    return d.home == StorageDecision::kDevice && d.held == StorageDecision::kDevice && !d.taken_away &&
           !d.copies.empty();
  }

  void leave_out(StorageId storage, const std::string& why) {
    auto& [storages, bytes] = left_out_[why];
    ++storages;
    bytes += t_.storages[storage].bytes;
  }

  // --- what is dropped in forward stays as long as others hold it

  void hold() {
    for (StorageDecision& d : plan_.storages) {
      if (moves(d)) continue;
      const OpId held = holds_.held_until(d.storage), freed = flow_.free(d.storage);
      const bool frees = freed != kNoOp && is_in_its_forward(d.storage, freed);  // the program does so by itself
      if (held == kNoOp && !frees) continue;
      const PlanPoint until{frees ? freed : held, !frees};
      for (PlannedDrop& drop : d.drops)
        if (drop.at < until && is_in_its_forward(d.storage, drop.at.op)) {
          drop.at = {until.op, until.after, drop.at.order};
          changed_ = true;
        }
    }
  }

  // Not behind a re-run that makes it again.
  bool is_in_its_forward(StorageId s, OpId op) const {
    return flow_.phases().of(op) == flow_.phases().of(flow_.writers(s).front());
  }

  // --- single operators are run again when a node of autograd's graph asks for what they made, and that is handed to
  // it

  void hand_to_nodes() {
    if (!saved_.known()) return;
    const PlanRealization names = realized_plan(plan_, t_, flow_).names;
    const std::vector<std::string> units = unit_modules(names);
    const RerunDemand demand(t_, flow_, saved_, inputs_);
    const auto in_order = [](const PlannedRerun& a, const PlannedRerun& b) { return a.at < b.at; };
    if (!std::is_sorted(plan_.reruns.begin(), plan_.reruns.end(), in_order)) {
      std::stable_sort(plan_.reruns.begin(), plan_.reruns.end(), in_order);
      changed_ = true;
    }
    for (std::size_t i = plan_.reruns.size(); i-- > 0;) {
      PlannedRerun& rerun = plan_.reruns[i];
      if (is_unit(rerun, units)) {
        changed_ = demand.move_unit(rerun, *inputs_.modules_around(rerun.ops.front(), names.recompute)) || changed_;
        changed_ = inputs_.keep_for_unit(rerun, names.recompute, plan_) || changed_;
        changed_ = inputs_.hold_inputs_of_unit(rerun, names.recompute, plan_) || changed_;
        continue;
      }
      changed_ = demand.move(rerun, plan_) || changed_;
      for (const OpId id : rerun.ops)
        for (const Use& use : t_.uses_of(t_.ops[id]))
          if (use.access == Access::write) changed_ = demand.hand_over(use.storage, rerun.at, plan_) || changed_;
    }
    changed_ = demand.put_in_order_of_asking(plan_) || changed_;
    changed_ = demand.drop_behind_readers(plan_, single_reruns(units)) || changed_;
    changed_ = inputs_.keep_for_operators(plan_, names.recompute) || changed_;
  }

  static std::vector<std::string> unit_modules(const PlanRealization& names) {
    std::vector<std::string> units;
    for (const ModuleRecompute& recompute : names.recompute)
      for (const std::vector<std::string>& unit : recompute.units) units.insert(units.end(), unit.begin(), unit.end());
    return units;
  }

  std::vector<bool> single_reruns(const std::vector<std::string>& units) const {
    std::vector<bool> is_single;
    for (const PlannedRerun& rerun : plan_.reruns) is_single.push_back(!is_unit(rerun, units));
    return is_single;
  }

  bool is_unit(const PlannedRerun& rerun, const std::vector<std::string>& units) const {
    return std::all_of(rerun.ops.begin(), rerun.ops.end(), [&](OpId id) {
      return std::any_of(units.begin(), units.end(),
                         [&](const std::string& unit) { return is_within(t_.strings[t_.ops[id].module], unit); });
    });
  }

  // --- moves

  void move_to_hooks() {
    const std::vector<std::string> units = unit_modules(realized_plan(plan_, t_, flow_).names);
    Bytes min_bytes = -1;
    for (const StorageDecision& d : plan_.storages)
      if (moves(d) && (min_bytes < 0 || t_.storages[d.storage].bytes < min_bytes))
        min_bytes = t_.storages[d.storage].bytes;
    if (min_bytes < 0) return;
    const std::vector<Pass> all_passes = passes(t_);
    std::vector<bool> is_done(plan_.storages.size(), false);
    for (const Pass& pass : all_passes) {
      const HookedStorages hooked(t_, flow_, saved_, holds_, pass, plan_, units);
      const HookMoves hooks(t_, saved_, hooked, plan_.tiers);
      for (std::size_t j = 0; j < plan_.storages.size(); ++j)
        if (moves(plan_.storages[j]) && !is_done[j] && is_of(pass, plan_.storages[j].storage))
          is_done[j] = move(plan_.storages[j], hooks, min_bytes);
    }
    std::vector<StorageDecision> kept;
    for (std::size_t j = 0; j < plan_.storages.size(); ++j)
      if (!moves(plan_.storages[j]) || is_done[j])
        kept.push_back(std::move(plan_.storages[j]));
      else
        leave_out(plan_.storages[j].storage, goes_to_host(plan_.storages[j], plan_.tiers)
                                                 ? "hooks do not see them, or they travel more than once"
                                                 : "hooks send to the host's memory only");
    plan_.storages = std::move(kept);
    drop_before_results();
  }

  // What an operator reads is saved before it asks for memory for its results: what goes with that goes before, too.
  void drop_before_results() {
    for (StorageDecision& d : plan_.storages) {
      if (!moves(d) || d.drops.empty()) continue;
      PlanPoint& at = d.drops.front().at;
      const OpId before = at.after ? at.op : insertion_point(t_, at.op);
      if (before == at.op || before <= d.copies.front().at.op) continue;
      at.op = before;
      changed_ = true;
    }
  }

  bool is_of(const Pass& pass, StorageId s) const {
    const auto writers = flow_.writers(s);
    return !writers.empty() && writers.front() >= pass.begin && writers.front() < pass.backward;
  }

  bool move(StorageDecision& d, const HookMoves& hooks, Bytes min_bytes) {
    std::optional<StorageDecision> moved = hooks.moved(d, min_bytes);
    if (!moved) return false;
    fetched_[d.storage] = d.fetches.front().at;
    if (*moved != d) {
      ++moved_;
      changed_ = true;
    }
    d = *std::move(moved);
    return true;
  }

  // At one point copies go first, in the order in which hooks are shown them, then drops, then fetches, each as the
  // plan had them, and behind them whatever else stands there.
  void put_in_order() {
    struct Item {
      PlanPoint* at;
      int turn;       // 0 copy, 1 drop, 2 fetch
      PlanPoint was;  // of a fetch: where the plan had it
    };
    std::vector<Item> items;
    std::vector<PlanPoint*> others;
    for (StorageDecision& d : plan_.storages) {
      const bool travels = moves(d);
      for (PlannedCopy& copy : d.copies) items.push_back({&copy.at, 0, copy.at});
      for (PlannedDrop& drop : d.drops)
        if (travels)
          items.push_back({&drop.at, 1, drop.at});
        else
          others.push_back(&drop.at);
      for (PlannedFetch& fetch : d.fetches) items.push_back({&fetch.at, 2, fetched_.at(d.storage)});
    }
    for (PlannedRerun& rerun : plan_.reruns) others.push_back(&rerun.at);
    std::stable_sort(items.begin(), items.end(), [](const Item& a, const Item& b) {
      return a.turn < b.turn || (a.turn == b.turn && a.was < b.was);
    });
    std::map<std::pair<OpId, bool>, std::uint32_t> taken;
    for (const Item& item : items) item.at->order = taken[{item.at->op, item.at->after}]++;
    std::map<std::pair<OpId, bool>, std::uint32_t> least;
    for (const PlanPoint* at : others) {
      const auto [found, is_new] = least.try_emplace({at->op, at->after}, at->order);
      found->second = std::min(found->second, at->order);
    }
    for (PlanPoint* at : others) {
      const auto moved = taken.find({at->op, at->after});
      if (moved == taken.end()) continue;
      const std::uint32_t first = least.at({at->op, at->after});
      if (first < moved->second) at->order += moved->second - first;
    }
  }

  // --- what comes of it

  RestrictedPlan settled() {
    if (plan_.storages.empty() && plan_.reruns.empty())
      return {{}, "Nothing of the plan is left that PyTorch can execute: " + text_of_left_out() + ".", ""};
    if (const std::vector<std::string> problems = check_plan(plan_, t_, flow_); !problems.empty())
      return {{},
              fmt::format("What PyTorch can execute of the plan cannot be carried out alone. {}{}", problems.front(),
                          left_out_.empty() ? "" : " Left out: " + text_of_left_out() + "."),
              ""};
    const PlanRealization names = realization_of(plan_, t_, flow_);
    if (!names.unnamed.empty()) return {{}, "PyTorch cannot execute the plan: " + names.unnamed.front().reason, ""};
    if (RerunDemand(t_, flow_, saved_, inputs_).wait_for_each_other(plan_, single_reruns(unit_modules(names))))
      return {{},
              "PyTorch cannot execute the plan: two groups of operators that it runs again each start from what the "
              "other makes.",
              ""};
    std::vector<std::string> sentences;
    if (moved_ > 0)
      sentences.push_back(fmt::format("Copies of {} are moved to where hooks run.", counted_text(moved_, "storage")));
    if (counters_ > 0)
      sentences.push_back(fmt::format("Not run again, since they count batches: {}.", counted_text(counters_, "op")));
    if (!left_out_.empty()) sentences.push_back("Left out: " + text_of_left_out() + ".");
    return {std::move(plan_), "", fmt::format("{}", fmt::join(sentences, " "))};
  }

  std::string text_of_left_out() const {
    std::vector<std::string> parts;
    if (reruns_left_out_ > 0) parts.push_back(counted_text(reruns_left_out_, "re-run") + " without a name");
    for (const auto& [why, found] : left_out_)
      parts.push_back(fmt::format("{} ({}), {}", counted_text(found.first, "storage"), human_bytes(found.second), why));
    return fmt::format("{}", fmt::join(parts, "; "));
  }

  MemoryPlan plan_;
  const Trace& t_;
  const Dataflow& flow_;
  const SavedStorages saved_;
  const ForwardHolds holds_;
  const RerunInputs inputs_;
  bool changed_ = false;
  std::map<StorageId, PlanPoint> fetched_;  // of what travels: where the plan as given fetches it
  std::size_t moved_ = 0, counters_ = 0, reruns_left_out_ = 0;
  std::map<std::string, std::pair<std::size_t, Bytes>> left_out_;  // by reason
};

}  // namespace

RestrictedPlan executable_plan(MemoryPlan plan, const Trace& trace, const Dataflow& flow) {
  return Restriction(std::move(plan), trace, flow).run();
}

}  // namespace memwall
