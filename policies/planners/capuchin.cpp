// Swaps what is free for longest, and computes again where that is cheaper than waiting for a copy.
//
// Peng et al. 2020, "Capuchin: Tensor-based GPU Memory Management for Deep Learning" (ASPLOS 2020):
//   free time  of two uses that follow each other: from the end of the copy out, begun behind the first, to the begin
//              of the copy back, ended at the second. Swapped are those of the longest, while copies have links to
//              themselves.
//   MSPS       memory saving per second: bytes of a storage / time of what must run to make it again. Where free times
//              do not suffice, the best swap and the best re-run are compared, by the seconds that each adds per byte.
//   feedback   where the second use found its copy still under way, the copy back is issued earlier, by 5 % of its
//              time.
// Written from the paper's abstract and public descriptions. Deviations: uses come from the trace, not from a passive
// run; copies are placed in a ledger of links, and queue (swap_schedule.h); parameters and optimizer states stay; what
// a chosen re-run starts from is not swapped.
//
// Chosen is what lies where more than the budget lives. Where nothing that may leave lies at the peak any more, and
// that is above the budget, the peak stays; what was chosen for places below it was chosen in vain. So the plan is made
// once more, with that peak as its budget.
//
// A re-run that would make the peak itself, with all that its ops make on their way, is given up: its storage stays,
// and other re-runs start from that.
//
// What a re-run starts from cannot be swapped. So copies alone are tried where no plan with re-runs keeps to the
// budget, or the step becomes much slower: repair.h says when they are tried and taken.
#include <algorithm>
#include <limits>
#include <queue>
#include <set>
#include <tuple>
#include <utility>

#include "policies/planners/host_transfer.h"
#include "policies/planners/planner.h"
#include "policies/profile/rerun_ops.h"
#include "policies/planners/swap_schedule.h"
#include "policies/profile/plan_estimate.h"
#include "policies/trace/rerun_rules.h"

namespace memwall {
namespace {

constexpr int kRounds = 8;  // of choices, as re-runs turn out to take too much memory

struct CapuchinSettings {
  Bytes min_bytes = 0;
  bool reruns = true;
  int feedback = 0;  // rounds
};

class Capuchin {
 public:
  Capuchin(const StepProfile& profile, const Budget& budget, const CapuchinSettings& settings)
      : p_(profile),
        settings_(settings),
        schedule_(profile, budget.device),
        away_(profile.trace().storages.size()),
        needed_(profile.trace().storages.size()),
        is_rerun_(profile.trace().storages.size(), false),
        given_up_(profile.trace().storages.size(), false) {}

  // What leaves, and how. Returns the most that lives then, by the schedule's count.
  Bytes choose() {
    gather();
    swap_for_free();
    for (int round = 0; round < kRounds && is_over(); ++round) {
      swap_or_rerun();
      if (!give_up_large_reruns()) break;
    }
    settle_reruns();
    schedule_.queue_copies();
    return schedule_.memory().peak();
  }

  // REQUIRES: choose() was called.
  MemoryPlan planned(const Pricer& pricer) {
    for (int round = 0; round < settings_.feedback && fetch_late_ones_earlier(pricer); ++round) {
    }
    return plan();
  }

 private:
  struct Ranked {
    double worth = 0;  // seconds of free time, or bytes per second; the highest first
    std::uint32_t candidate = 0;
    bool operator<(const Ranked& other) const {
      return std::tuple(worth, other.candidate) < std::tuple(other.worth, candidate);
    }
  };

  bool is_over() const { return schedule_.memory().peak() > schedule_.budget(); }

  void gather() {
    for (const Gap& gap : p_.gaps()) {
      const Storage& s = p_.trace().storages[gap.storage];
      if (!gap.wraps && !s.preexisting && s.bytes >= settings_.min_bytes && gap.before > gap.after + 1)
        candidates_.push_back(gap);
    }
  }

  // Nothing is decided about the storage, and to have it away is worth something.
  bool is_useful(const Gap& gap) const {
    return away_[gap.storage].storage == kNoStorage && schedule_.is_over(gap.after + 1, gap.before - 1);
  }
  bool may_be_swapped(const Gap& gap) const { return is_useful(gap) && dependents(gap) == 0; }

  // Chosen re-runs within the gap that read or make its storage: each would have to make it again.
  std::size_t dependents(const Gap& gap) const {
    const std::vector<OpId>& needed = needed_[gap.storage];
    return static_cast<std::size_t>(
        std::count_if(needed.begin(), needed.end(), [&](OpId at) { return gap.after < at && at <= gap.before; }));
  }

  // By free time, while copies hide.
  void swap_for_free() {
    std::vector<std::pair<Duration, const Gap*>> order;
    for (const Gap& gap : candidates_) order.emplace_back(schedule_.free_time(gap), &gap);
    std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    for (const auto& [free_time, gap] : order) {
      if (!is_over() || free_time < Duration{}) return;
      if (!may_be_swapped(*gap)) continue;
      if (const auto swap = schedule_.place(*gap); swap && swap->stall == Duration{}) commit(*swap);
    }
  }

  void commit(const Swap& swap) {
    schedule_.commit(swap);
    away_[swap.gap.storage] = swap.gap;
  }

  // --- re-runs

  OpId rerun_point(const Gap& gap) const { return insertion_point(p_.trace(), gap.before); }

  std::optional<RerunOps> rerun_of(const Gap& gap) const {
    const OpId at = rerun_point(gap);
    if (!settings_.reruns || given_up_[gap.storage] || p_.trace().ops[gap.before].phase == Phase::forward ||
        at <= gap.after + 1)
      return std::nullopt;
    auto rerun = rerun_ops(p_, gap.storage, at, [&](StorageId s) { return s != gap.storage && is_away(s, at); });
    // What it makes beside its storage is not to be fetched later. What is dropped for a re-run of its own may be made
    // for this one, too, and goes again at its end.
    if (rerun && std::any_of(rerun->outputs.begin(), rerun->outputs.end(),
                             [&](StorageId s) { return s != gap.storage && is_away(s, at) && !is_rerun_[s]; }))
      return std::nullopt;
    return rerun;
  }

  // Of what is swapped the whole gap counts: copies may still move in it.
  bool is_away(StorageId s, OpId at) const {
    return away_[s].storage != kNoStorage && away_[s].after < at && at <= away_[s].before;
  }

  void commit(const Gap& gap, const RerunOps& rerun) {
    const OpId at = rerun_point(gap);
    schedule_.memory().remove(gap.storage, gap.after + 1, at - 2);
    away_[gap.storage] = gap;
    is_rerun_[gap.storage] = true;
    chosen_reruns_.push_back(gap);
    need(rerun, at);
  }

  // A re-run has grown, as what it starts from was dropped since. Where it would make the peak, with all that its ops
  // make on their way, its storage stays: others start from that. Did any?
  bool give_up_large_reruns() {
    std::vector<Gap> kept;
    for (const Gap& gap : chosen_reruns_) {
      const OpId at = rerun_point(gap);
      const auto rerun = rerun_of(gap);
      if (rerun && held_during(*rerun, gap.storage, at) <= std::max(schedule_.budget(), schedule_.memory().peak())) {
        kept.push_back(gap);
        continue;
      }
      schedule_.memory().restore(gap.storage, gap.after + 1, at - 2);
      away_[gap.storage] = Gap{};
      is_rerun_[gap.storage] = false;
      given_up_[gap.storage] = true;
    }
    if (kept.size() == chosen_reruns_.size()) return false;
    chosen_reruns_ = std::move(kept);
    for (std::vector<OpId>& needed : needed_) needed.clear();
    for (const Gap& gap : chosen_reruns_)
      if (const auto rerun = rerun_of(gap)) need(*rerun, rerun_point(gap));
    return true;
  }

  Bytes held_during(const RerunOps& rerun, StorageId storage, OpId at) const {
    Bytes bytes = schedule_.memory().peak(at - 1, at - 1);  // the storage among it
    for (const StorageId s : rerun.outputs)
      if (s != storage) bytes += p_.held(s);
    return bytes;
  }

  void need(const RerunOps& rerun, OpId at) {
    for (const StorageId input : rerun.inputs) needed_[input].push_back(at);
    for (const StorageId output : rerun.outputs) needed_[output].push_back(at);
  }

  // What a re-run starts from may have been dropped since: it begins with what makes that. Where it cannot, its storage
  // stays.
  void settle_reruns() {
    for (const Gap& gap : chosen_reruns_) {
      const OpId at = rerun_point(gap);
      const auto rerun = rerun_of(gap);
      if (!rerun) {
        schedule_.memory().restore(gap.storage, gap.after + 1, at - 2);
        away_[gap.storage] = Gap{};
        is_rerun_[gap.storage] = false;
        continue;
      }
      StorageDecision d;
      d.storage = gap.storage;
      d.drops.push_back({{gap.after, true, 1}});
      dropped_.push_back(std::move(d));
      reruns_.push_back({{at, false, 0}, rerun->ops});
    }
  }

  double bytes_of(std::uint32_t candidate) const {
    return static_cast<double>(p_.held(candidates_[candidate].storage));
  }

  // Bytes per second of what must run; 0 where nothing can.
  double savings_rate(std::uint32_t candidate) const {
    const auto rerun = rerun_of(candidates_[candidate]);
    if (!rerun) return 0;
    const double times = 1 + static_cast<double>(dependents(candidates_[candidate]));
    return bytes_of(candidate) / std::max(1e-12, to_seconds(rerun->time) * times);
  }

  // The best that still is worth what it was when it was put in: worth only falls as more is chosen.
  std::optional<Ranked> best_rerun(std::priority_queue<Ranked>& queue) const {
    while (!queue.empty()) {
      const Ranked top = queue.top();
      queue.pop();
      if (!is_useful(candidates_[top.candidate])) continue;
      const double now = savings_rate(top.candidate);
      if (now >= top.worth) return top;
      if (now > 0) queue.push({now, top.candidate});
    }
    return std::nullopt;
  }

  std::optional<Swap> best_swap(std::priority_queue<Ranked>& queue) const {
    for (; !queue.empty(); queue.pop()) {
      const Gap& gap = candidates_[queue.top().candidate];
      if (!may_be_swapped(gap)) continue;
      if (auto swap = schedule_.place(gap)) return swap;
    }
    return std::nullopt;
  }

  void swap_or_rerun() {
    std::priority_queue<Ranked> reruns, swaps;
    for (std::uint32_t i = 0; i < candidates_.size(); ++i) {
      if (!is_useful(candidates_[i])) continue;
      if (may_be_swapped(candidates_[i])) swaps.push({to_seconds(schedule_.free_time(candidates_[i])), i});
      if (const double rate = savings_rate(i); rate > 0) reruns.push({rate, i});
    }
    while (is_over()) {
      const std::optional<Ranked> rerun = best_rerun(reruns);
      const std::optional<Swap> swap = best_swap(swaps);
      if (!swap && !rerun) return;
      const double swap_seconds = swap ? to_seconds(swap->stall) / static_cast<double>(p_.held(swap->gap.storage))
                                       : std::numeric_limits<double>::infinity();
      if (rerun && 1 / rerun->worth <= swap_seconds) {
        commit(candidates_[rerun->candidate], *rerun_of(candidates_[rerun->candidate]));
        continue;
      }
      if (rerun) reruns.push(*rerun);
      commit(*swap);
    }
  }

  // --- the plan, and feedback

  MemoryPlan plan() const {
    MemoryPlan plan;
    plan.tiers.push_back(to_host());
    plan.storages = schedule_.decisions();
    plan.storages.insert(plan.storages.end(), dropped_.begin(), dropped_.end());
    plan.reruns = reruns_;
    return plan;
  }

  // Issues copies back earlier that their use has waited for. Were there any that could be?
  bool fetch_late_ones_earlier(const Pricer& pricer) {
    const SimulatedPlan simulated = simulate_plan(p_, plan(), pricer);
    const Trace& planned = simulated.trace;
    std::set<OpId> waited_for;
    for (const OpRecord& record : simulated.result.records)
      if (record.device_reason == WaitReason::event) waited_for.insert(record.device_cause);
    bool moved = false;
    const std::vector<std::size_t> next = schedule_.fetch_order();
    std::size_t found = 0;
    for (OpId id = 0; id < planned.ops.size() && found < next.size(); ++id) {
      if (!brings_back(planned, planned.ops[id])) continue;
      const std::size_t swap = next[found++];
      const Ledger::Span& back = schedule_.swaps()[swap].back;
      if (waited_for.contains(id)) moved = schedule_.fetch_earlier(swap, (back.end - back.begin) / 20) || moved;
    }
    return moved;
  }

  // Does the op fill a storage that the plan has made?
  bool brings_back(const Trace& planned, const Op& op) const {
    return op.kind == OpKind::copy && planned.places[op.to] == "hbm" &&
           std::any_of(planned.uses_of(op).begin(), planned.uses_of(op).end(), [&](const Use& use) {
             return use.access == Access::write && use.storage >= p_.trace().storages.size();
           });
  }

  const StepProfile& p_;
  const CapuchinSettings settings_;
  SwapSchedule schedule_;
  std::vector<Gap> candidates_;
  std::vector<Gap> away_;                  // by storage: where it is away; storage kNoStorage: nowhere
  std::vector<std::vector<OpId>> needed_;  // by storage: the re-runs that read or make it
  std::vector<bool> is_rerun_;             // by storage: away_ by a drop, to be made again
  std::vector<bool> given_up_;             // by storage: to make it again takes too much memory
  std::vector<Gap> chosen_reruns_;
  std::vector<StorageDecision> dropped_;  // to be made again
  std::vector<PlannedRerun> reruns_;
};

MemoryPlan capuchin_plan(const StepProfile& profile, const Budget& budget, const CapuchinSettings& settings,
                         const Pricer& pricer) {
  Capuchin chosen(profile, budget, settings);
  const Bytes peak = chosen.choose();
  if (peak <= budget.device) return chosen.planned(pricer);
  Capuchin enough(profile, {peak}, settings);
  enough.choose();
  return enough.planned(pricer);
}

CapuchinSettings settings_of(const PolicyArguments& arguments) {
  return {arguments.bytes("min_bytes"), arguments.choice("use") == "both",
          static_cast<int>(arguments.integer("feedback"))};
}

Planner planner_of(const CapuchinSettings& settings) {
  return [settings](const StepProfile& profile, const Budget& budget, const Machine& machine, const Pricer& pricer) {
    require_host("capuchin", machine);
    return capuchin_plan(profile, budget, settings, pricer);
  };
}

const RegisterPlanner registered_capuchin{
    {.name = "capuchin",
     .sentence = "swaps what rests longest to the host, and computes again what is cheaper that way (Peng et al. 2020)",
     .parameters = {choice("use", "both", {"both", "swaps"}, "both: copies and re-runs; swaps: copies alone."),
                    bytes("min_bytes", "1MiB", 0, "smaller storages stay."),
                    integer("feedback", 3, {0, 100}, "rounds",
                            "of simulations after which late copies leave earlier.")},
     .make = [](const PolicyArguments& arguments) { return planner_of(settings_of(arguments)); },
     .others = [](const PolicyArguments& arguments) -> std::vector<OtherPlanner> {
       CapuchinSettings copies_alone = settings_of(arguments);
       if (!std::exchange(copies_alone.reruns, false)) return {};
       return {{planner_of(copies_alone)}};
     }}};

}  // namespace
}  // namespace memwall
