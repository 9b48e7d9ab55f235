// Swaps what is free for longest, and computes again where that is cheaper than waiting for a copy.
//
// Peng et al. 2020, "Capuchin: Tensor-based GPU Memory Management for Deep Learning" (ASPLOS 2020):
//   free time  of two uses that follow each other: from the end of the copy out, begun behind the first, to the begin of
//              the copy back, ended at the second. Swapped are those of the longest, while copies have links to themselves.
//   MSPS       memory saving per second: bytes of a storage / time of what must run to make it again. Where free times
//              do not suffice, the best swap and the best re-run are compared, by the seconds that each adds per byte.
//   feedback   where the second use found its copy still under way, the copy back is issued earlier, by 5 % of its time.
// Written from the paper's abstract and public descriptions. Deviations: uses come from the trace, not from a passive run;
// a copy's place is found in a ledger of links; parameters and optimizer states stay; what a chosen re-run starts from
// stays until then, instead of being made again itself.
#include <algorithm>
#include <map>
#include <queue>
#include <set>
#include <tuple>

#include "policies/plan/plan_writer.h"
#include "policies/planners/planner.h"
#include "policies/planners/rerun_chain.h"
#include "policies/profile/ledger.h"
#include "policies/profile/planned_memory.h"
#include "policies/trace/rerun_rules.h"
#include "sim/engine/simulation.h"
#include "sim/error.h"

namespace memwall {
namespace {

struct CapuchinSettings {
  Bytes min_bytes = 0;
  bool reruns = true;
  int feedback = 0;  // rounds
};

// A copy out and back within a gap.
struct Swap {
  Gap gap;
  Ledger::Span out, back;
  OpId dropped = kNoOp, fetched = kNoOp;  // right before these ops
  Duration stall{};                       // that it adds
};

class Capuchin {
 public:
  Capuchin(const StepProfile& profile, const Budget& budget, const CapuchinSettings& settings)
      : p_(profile),
        settings_(settings),
        budget_(budget.device),
        ledger_(profile),
        memory_(profile),
        device_(profile.machine().tier("hbm")),
        host_(profile.machine().tier("host")),
        decisions_(profile.trace().storages.size(), kNone),
        needed_(profile.trace().storages.size()) {
    plan_.tiers.push_back(to_host());
  }

  MemoryPlan run(const Pricer& pricer) {
    gather();
    swap_for_free();
    if (memory_.peak() > budget_) swap_or_rerun();
    queue_copies();
    for (int round = 0; round < settings_.feedback && !swaps_.empty(); ++round)
      if (!move_late_fetches(pricer)) break;
    std::sort(plan_.storages.begin(), plan_.storages.end(),
              [](const StorageDecision& a, const StorageDecision& b) { return a.storage < b.storage; });
    return std::move(plan_);
  }

 private:
  static constexpr std::uint32_t kNone = 0xffffffff;

  struct Ranked {
    double worth = 0;  // bytes per second, or seconds of free time; the highest first
    std::uint32_t candidate = 0;
    bool operator<(const Ranked& other) const {
      return std::tuple(worth, other.candidate) < std::tuple(other.worth, candidate);
    }
  };

  void gather() {
    for (const Gap& gap : p_.gaps()) {
      const Storage& s = p_.trace().storages[gap.storage];
      const bool lasting = s.kind == StorageKind::parameter || s.kind == StorageKind::optimizer_state;
      if (gap.wraps || lasting || s.preexisting || s.bytes < settings_.min_bytes || gap.before <= gap.after + 1) continue;
      candidates_.push_back(gap);
    }
    free_time_.reserve(candidates_.size());
    for (const Gap& gap : candidates_) {
      const Bytes bytes = p_.trace().storages[gap.storage].bytes;
      free_time_.push_back(gap.length() - ledger_.alone(device_, host_, bytes) - ledger_.alone(host_, device_, bytes));
    }
  }

  bool helps(OpId first, OpId end) const { return first < end && memory_.peak(first, end - 1) > budget_; }
  bool is_open(const Gap& gap) const { return decisions_[gap.storage] == kNone && !is_needed_within(gap); }

  // Does a chosen re-run start from the storage within the gap?
  bool is_needed_within(const Gap& gap) const {
    return std::any_of(needed_[gap.storage].begin(), needed_[gap.storage].end(),
                       [&](OpId at) { return gap.after < at && at <= gap.before; });
  }

  // --- copies

  std::optional<Swap> swap_of(const Gap& gap) const {
    const Bytes bytes = p_.trace().storages[gap.storage].bytes;
    if (!ledger_.has_room(host_, bytes, gap.begin, gap.end)) return std::nullopt;
    Swap swap{gap, {}, {}, kNoOp, kNoOp, {}};
    const auto out = ledger_.earliest(device_, host_, bytes, gap.begin);
    if (!out) return std::nullopt;
    auto back = ledger_.latest(host_, device_, bytes, gap.end);
    if (!back || back->begin < out->end) back = ledger_.earliest(host_, device_, bytes, out->end);
    if (!back) return std::nullopt;
    swap.out = *out, swap.back = *back;
    swap.dropped = std::clamp(p_.op_at(out->end), gap.after + 1, gap.before);
    swap.fetched = std::clamp(p_.op_running_at(back->begin), swap.dropped, gap.before);
    swap.stall = std::max(Duration{}, back->end - gap.end) +
                 std::max(Duration{}, out->end - p_.start(std::min(swap.dropped, gap.before)));
    return swap;
  }

  void commit(const Swap& swap) {
    const Bytes bytes = p_.trace().storages[swap.gap.storage].bytes;
    ledger_.reserve(device_, host_, bytes, swap.out);
    ledger_.reserve(host_, device_, bytes, swap.back);
    ledger_.hold(host_, bytes, swap.gap.begin, swap.gap.end);
    take_away(swap);
    decisions_[swap.gap.storage] = static_cast<std::uint32_t>(plan_.storages.size());
    StorageDecision d;
    d.storage = swap.gap.storage;
    d.copies.push_back({{swap.gap.after, true, 0}, 0});
    d.drops.push_back({{swap.dropped, false, 0}});
    d.fetches.push_back({{swap.fetched, false, 1}, 0});
    plan_.storages.push_back(std::move(d));
    swaps_.push_back(swap);
  }

  void take_away(const Swap& swap) { memory_.remove(swap.gap.storage, swap.dropped - 1, swap.fetched - 2); }
  void take_back(const Swap& swap) { memory_.restore(swap.gap.storage, swap.dropped - 1, swap.fetched - 2); }

  // The ledger shares links as fluids; copy engines serve one copy after the other. Copies out queue up by when they may
  // leave, copies back end one before the other, each as late as its use and the next one let it.
  void queue_copies() {
    std::vector<Swap*> order;
    for (Swap& swap : swaps_) {
      take_back(swap);
      order.push_back(&swap);
    }
    const auto time_of = [&](int from, int to, const Swap& swap) {
      return ledger_.alone(from, to, p_.trace().storages[swap.gap.storage].bytes);
    };
    std::stable_sort(order.begin(), order.end(),
                     [](const Swap* a, const Swap* b) { return a->gap.begin < b->gap.begin; });
    Time left{};
    for (Swap* swap : order) {
      left = std::max(left, swap->gap.begin) + time_of(device_, host_, *swap);
      swap->dropped = std::clamp(p_.op_at(left), swap->gap.after + 1, swap->gap.before);
    }
    std::stable_sort(order.begin(), order.end(), [](const Swap* a, const Swap* b) { return a->gap.end > b->gap.end; });
    Time next = kNever;
    for (Swap* swap : order) {
      next = std::min(next, swap->gap.end) - time_of(host_, device_, *swap);
      swap->fetched = std::clamp(p_.op_running_at(next), swap->dropped, swap->gap.before);
    }
    for (const Swap& swap : swaps_) {
      take_away(swap);
      StorageDecision& d = plan_.storages[decisions_[swap.gap.storage]];
      d.drops.front().at.op = swap.dropped;
      d.fetches.front().at.op = swap.fetched;
    }
  }

  // By free time, while copies hide.
  void swap_for_free() {
    std::vector<std::uint32_t> order(candidates_.size());
    for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return free_time_[a] > free_time_[b]; });
    for (const std::uint32_t i : order) {
      if (memory_.peak() <= budget_ || free_time_[i] < Duration{}) return;
      const Gap& gap = candidates_[i];
      if (!is_open(gap) || !helps(gap.after, gap.before - 1)) continue;
      const auto swap = swap_of(gap);
      if (swap && swap->stall == Duration{} && helps(swap->dropped - 1, swap->fetched - 1)) commit(*swap);
    }
  }

  // --- re-runs

  std::optional<RerunChain> chain_of(const Gap& gap) const {
    if (!settings_.reruns) return std::nullopt;
    const OpId at = insertion_point(p_.trace(), gap.before);
    if (p_.trace().ops[gap.before].phase == Phase::forward || at <= gap.after) return std::nullopt;
    return rerun_chain(p_, gap.storage, at, [&](StorageId s) { return s != gap.storage && is_absent(s, at); });
  }

  // Is it away at op `at` by what was decided so far?
  bool is_absent(StorageId s, OpId at) const {
    if (decisions_[s] == kNone) return false;
    const StorageDecision& d = plan_.storages[decisions_[s]];
    const OpId back = d.fetches.empty() ? back_.at(decisions_[s]) : d.fetches.front().at.op;
    return d.drops.front().at.op <= at && at <= back;
  }

  void commit(const Gap& gap, const RerunChain& chain) {
    const OpId at = insertion_point(p_.trace(), gap.before);
    memory_.remove(gap.storage, gap.after, at - 2);
    decisions_[gap.storage] = static_cast<std::uint32_t>(plan_.storages.size());
    back_[decisions_[gap.storage]] = at;
    StorageDecision d;
    d.storage = gap.storage;
    d.drops.push_back({{gap.after, true, 1}});
    plan_.storages.push_back(std::move(d));
    plan_.reruns.push_back({{at, false, 0}, chain.ops});
    for (const StorageId input : chain.inputs) {
      needed_[input].push_back(at);
      if (const OpId freed = p_.flow().free(input); freed != kNoOp && freed < at) memory_.restore(input, freed, at - 1);
    }
  }

  double bytes_of(std::uint32_t candidate) const {
    return static_cast<double>(p_.held(candidates_[candidate].storage));
  }

  // Bytes per second of what must run; 0 where nothing can.
  double savings_rate(std::uint32_t candidate) const {
    const auto chain = chain_of(candidates_[candidate]);
    return chain ? bytes_of(candidate) / std::max(1e-12, to_seconds(chain->time)) : 0;
  }

  bool is_useful(std::uint32_t i) const {
    const Gap& gap = candidates_[i];
    return is_open(gap) && helps(gap.after, gap.before - 1);
  }

  // The best of the queue whose worth still is what it was when it was put in; worth only falls as more is chosen.
  std::optional<Ranked> best_rerun(std::priority_queue<Ranked>& queue) const {
    while (!queue.empty()) {
      const Ranked top = queue.top();
      queue.pop();
      if (!is_useful(top.candidate)) continue;
      const double now = savings_rate(top.candidate);
      if (now <= 0) continue;
      if (now >= top.worth * 0.999) return Ranked{now, top.candidate};
      queue.push({now, top.candidate});
    }
    return std::nullopt;
  }

  void swap_or_rerun() {
    std::priority_queue<Ranked> reruns, swaps;
    for (std::uint32_t i = 0; i < candidates_.size(); ++i) {
      if (!is_useful(i)) continue;
      swaps.push({to_seconds(free_time_[i]), i});
      if (const double rate = savings_rate(i); rate > 0) reruns.push({rate, i});
    }
    while (memory_.peak() > budget_) {
      const std::optional<Ranked> rerun = best_rerun(reruns);
      while (!swaps.empty() && !is_useful(swaps.top().candidate)) swaps.pop();
      std::optional<Swap> swap;
      if (!swaps.empty()) swap = swap_of(candidates_[swaps.top().candidate]);
      if (!swap && !rerun) {
        if (swaps.empty()) return;
        swaps.pop();
        continue;
      }
      const double swap_cost =
          swap ? to_seconds(swap->stall) / bytes_of(swaps.top().candidate) : std::numeric_limits<double>::infinity();
      if (rerun && 1 / rerun->worth <= swap_cost) {
        commit(candidates_[rerun->candidate], *chain_of(candidates_[rerun->candidate]));
        continue;
      }
      if (rerun) reruns.push(*rerun);
      if (helps(swap->dropped - 1, swap->fetched - 1)) commit(*swap);
      swaps.pop();
    }
  }

  // --- feedback

  // Issues copies back earlier that their use has waited for. Were there any that could be?
  bool move_late_fetches(const Pricer& pricer) {
    TraceEdit edit(p_.trace(), p_.machine().host);
    write_plan(plan_, p_.flow(), pricer, edit);
    const Trace planned = std::move(edit).apply();
    SimulationOptions options;
    options.allocator = "ideal";
    const SimulationResult result = simulate(planned, p_.machine(), options);
    std::set<OpId> waited_for;
    for (const OpRecord& record : result.records)
      if (record.device_reason == WaitReason::event) waited_for.insert(record.device_cause);
    bool moved = false;
    std::size_t next = 0;
    const std::vector<std::size_t> order = fetch_order();
    for (OpId id = 0; id < planned.ops.size(); ++id) {
      const Op& op = planned.ops[id];
      if (!op.added || op.kind != OpKind::copy || planned.places[op.to] != "hbm") continue;
      if (next == order.size()) break;  // copies of an earlier policy stand among them: not ours to move
      const std::size_t swap = order[next++];
      if (waited_for.contains(id)) moved = issue_earlier(swaps_[swap]) || moved;
    }
    return moved;
  }

  // Swaps as their copies back stand in the host program.
  std::vector<std::size_t> fetch_order() const {
    std::vector<std::size_t> order(swaps_.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return std::tuple(swaps_[a].fetched, decisions_[swaps_[a].gap.storage]) <
             std::tuple(swaps_[b].fetched, decisions_[swaps_[b].gap.storage]);
    });
    return order;
  }

  bool issue_earlier(Swap& swap) {
    const Bytes bytes = p_.trace().storages[swap.gap.storage].bytes;
    const Duration step = ledger_.alone(host_, device_, bytes) / 20;
    OpId earlier = p_.op_at(p_.start(swap.fetched) - step);
    earlier = std::max(std::min(earlier, swap.fetched - 1), swap.dropped);
    if (earlier >= swap.fetched || earlier < 1) return false;
    memory_.restore(swap.gap.storage, earlier - 1, swap.fetched - 2);
    if (memory_.peak(earlier - 1, swap.fetched - 2) > budget_) {
      memory_.remove(swap.gap.storage, earlier - 1, swap.fetched - 2);
      return false;
    }
    swap.fetched = earlier;
    plan_.storages[decisions_[swap.gap.storage]].fetches.front().at.op = earlier;
    return true;
  }

  const StepProfile& p_;
  const CapuchinSettings settings_;
  const Bytes budget_;
  Ledger ledger_;
  PlannedMemory memory_;
  const int device_, host_;
  std::vector<Gap> candidates_;
  std::vector<Duration> free_time_;          // by candidate
  std::vector<std::uint32_t> decisions_;     // by storage: index into plan_.storages
  std::map<std::uint32_t, OpId> back_;       // by decision: where a re-run brings it back
  std::vector<std::vector<OpId>> needed_;    // by storage: the re-runs that start from it
  std::vector<Swap> swaps_;
  MemoryPlan plan_;
};

const RegisterPlanner registered_capuchin{
    {.name = "capuchin",
     .sentence = "swaps what rests longest to the host, and computes again what is cheaper that way (Peng et al. 2020)",
     .parameters = {choice("use", "both", {"both", "swaps"}, "both: copies and re-runs; swaps: copies alone."),
                    bytes("min_bytes", "1MiB", 0, "smaller storages stay."),
                    integer("feedback", 3, {0, 100}, "rounds", "of simulations after which late copies leave earlier.")},
     .make = [](const PolicyArguments& arguments) -> Planner {
       const CapuchinSettings settings{arguments.bytes("min_bytes"), arguments.choice("use") == "both",
                               static_cast<int>(arguments.integer("feedback"))};
       return [settings](const StepProfile& profile, const Budget& budget, const Machine& machine, const Pricer& pricer) {
         const int host = machine.tier("host"), device = machine.tier("hbm");
         if (host < 0 || machine.route(device, host, false) == nullptr || machine.route(host, device, false) == nullptr)
           throw UsageError("Policy 'capuchin' needs a tier 'host' with ways to it and back; machine '" + machine.name +
                            "' has none.");
         return Capuchin(profile, budget, settings).run(pricer);
       };
     }}};

}  // namespace
}  // namespace memwall
