#include "policies/cycle/step_plan.h"

#include <algorithm>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "policies/cycle/cycle_memory_plan.h"
#include "policies/cycle/planning_values.h"
#include "policies/cycle/profile_cycle.h"
#include "policies/cycle/rerun_order.h"
#include "policies/cycle/whole_moves.h"

namespace memwall {
namespace {

// So many times the candidates that the bound favours are made again where plans are first compared; where none of
// these plans fits, as many as hold these shares of all candidates' bytes. Then between the best neighbours.
constexpr double kTimes[] = {1, 1.15, 0.87, 1.35, 0.7};
constexpr double kShares[] = {0.3, 0.6, 1, 0.1, 0.8, 0.03, 0.01, 0};
constexpr double kParts[] = {1, 0.75, 0.5, 0.25}, kFirstParts[] = {1};  // of candidates that are given
constexpr double kFirstTimes[] = {1}, kFirstShares[] = {0.3, 1, 0};     // without search
// Without search other numbers are tried where a turn takes longer than so many times that with unlimited memory, and
// other limits of re-runs where it takes longer than so many times that.
constexpr double kShort = 1.2, kLong = 2;
constexpr int kBisections = 4;
// order_by_bound's: finer is better and takes longer; which sets of re-runs the other moves fit best only trying shows.
constexpr double kCoarsest = 1.0 / 2, kCoarse = 1.0 / 4, kFine = 1.0 / 16, kFiner = 1.0 / 32;
// Slots that bounds look at without search.
constexpr std::size_t kFirstPeaks = 64;
// And of a bound that only shows whether another number of re-runs can be better.
constexpr std::size_t kPeaksToRuleOut = 8;
// In cycles of many slots each step of an order takes long: from so many on, steps are coarser, by the square of the
// slots, and bounds look at fewer slots, at so many times the cycle's in all.
constexpr double kSlotsOfFiner = 8'500;
constexpr std::size_t kSlotsAtPeaks = 400'000;
// FoundMoves::work: steps of many ops are not planned for minutes.
constexpr std::uint64_t kMostWorkInAll = 1'200'000, kMostWorkOfSlot = 100;
constexpr SearchEffort kQuick{.settings = 2, .repairs = 0}, kQuickest{.settings = 1, .repairs = 0};
// Where others beside the best are asked for: for which of them the allocator has a place decides more than the rest of
// a search would, which takes most of its time.
constexpr SearchEffort kBeside{.settings = 10, .repairs = 150};
// So many of the next best are searched on, too: quick attempts differ by half a percent by luck.
constexpr std::size_t kNext = 2;
// What may lie behind the host's memory is so many times what has to.
constexpr double kSpare = 2;
// WholeMoves::work that counts as one of FoundMoves::work.
constexpr std::uint64_t kWholeOfWork = 300;
// A plan so near to the bound needs no further search.
constexpr double kNear = 1.0005;
// Another plan is nearly as good where its turn takes at most so many times as long.
constexpr double kAlike = 1.02;

struct Attempt {
  std::size_t many = 0;  // candidates that are made again
  CycleWithReruns reruns;
  FoundMoves moves;
};

class Planning {
 public:
  Planning(const StepProfile& profile, Bytes budget, const StepPlanSettings& settings)
      : p_(profile),
        machine_(profile.machine()),
        budget_(budget),
        settings_(settings),
        links_(links_of_machine(machine_, settings.tiers)),
        made_(profile, links_, settings.tiers, settings.keep_results),
        base_(made_.step()) {
    slower_ = links_;
    if (settings.tiers.size() > 1) leave_staging();
    // Planned is as if there were no buffers on the way, bounds of plans included.
    for (CyclePath& path : slower_.paths) path.staged_out_rate = path.staged_in_rate = 0;
    for (CyclePath& path : slower_.paths) path.out_rate /= 1 + settings.robust, path.in_rate /= 1 + settings.robust;
    slower_.total_out /= 1 + settings.robust;
    slower_.total_in /= 1 + settings.robust;
  }

  StepPlan run() {
    StepPlan result;
    const CycleBounds& bounds = made_.bounds(budget_, peaks(), settings_.recompute && settings_.search);
    result.moves_bound = bounds.moves;
    result.ideal_seconds = result.moves_bound.ideal_seconds;
    result.joint_bound_seconds = settings_.recompute && !settings_.search ? result.ideal_seconds : bounds.joint_seconds;
    bound_ = result.joint_bound_seconds;
    moves_seconds_ = result.moves_bound.seconds;
    ideal_ = result.ideal_seconds;
    if (result.moves_bound.excess <= 0) {
      result.fits = true;
      result.seconds = result.ideal_seconds;
      return result;
    }
    if (result.moves_bound.least_budget > budget_) return result;  // one slot alone touches more
    result.too_slow = bound_ > settings_.worth_seconds;
    if (result.too_slow) return result;
    if (settings_.whole_moves) {
      move_whole();
      return filled(std::move(result));
    }
    const double promising = settings_.search ? kNear : kShort;
    if (!settings_.recompute || result.moves_bound.seconds <= result.ideal_seconds * promising) attempt(0);
    if (!settings_.recompute) {
      finish();
      return filled(std::move(result));
    }
    if (settings_.candidates)
      compare_given();
    else
      compare_favoured(result.moves_bound.excess / settings_.finest);
    finish();
    return filled(std::move(result));
  }

 private:
  void compare_favoured(Bytes least) {
    const RerunLimits few{64, budget_ / 6}, many{256, budget_ / 2};
    const double large = static_cast<double>(base_.program.slots.size()) / kSlotsOfFiner, finest = large * large;
    const double first = settings_.roughly && !settings_.search ? kCoarsest : kCoarse;
    compare(few, {.share_per_round = first, .least_bytes = least, .peaks = peaks_in_order()});
    if (goes_deep() && !is_enough() && finest < kCoarse)
      compare(few, {.share_per_round = std::max(kFine, finest), .least_bytes = least, .peaks = peaks_in_order()});
    if (settings_.roughly ? !best_.moves.fits : settings_.search ? !is_enough() : !is_shorter_than(kLong))
      compare(many, {.share_per_round = std::clamp(finest, kFiner, kCoarse), .peaks = peaks_in_order()});
  }

  void move_whole() {
    Attempt one{0, cycle_with_reruns(p_, base_, {}, 0), {}};
    auto found = find_whole_moves(StepCycle(one.reruns.step.program), slower_, budget_);
    if (!found) return;
    work_ += found->work / kWholeOfWork;
    if (!found->best || found->best->seconds > settings_.worth_seconds) return;
    one.moves.fits = true;
    one.moves.seconds = found->best->seconds;
    one.moves.plan = std::move(found->best->plan);
    best_ = std::move(one);
  }

  // All, and parts of them.
  void compare_given() {
    begin(settings_.candidates(p_));
    for (const double share : goes_deep() ? std::span<const double>(kParts) : kFirstParts)
      if (!is_enough()) attempt(many_of(share));
    if (goes_deep()) bisect();
  }

  // Copies to other tiers pass through buffers in the host's memory, TransferStyle::staging of them in each direction,
  // of the size of the largest storage that does: the large ones stay on the host, as long as enough others are left to
  // go on. REQUIRES: another path behind the host's.
  void leave_staging() {
    if (!slower_.paths.front().pinned || !is_staged()) return;
    const StepCycle& cycle = cycle_of(p_).cycle;
    const auto& live = cycle.live();
    const std::int64_t highest = std::max_element(live.begin(), live.end()) - live.begin();
    std::vector<Bytes> sizes;  // of what could be away where most lives
    for (const CycleGap& gap : cycle.gaps())
      if (gap.begin <= highest ? highest < gap.end : highest + cycle.size() < gap.end)
        sizes.push_back(cycle.storages()[gap.storage].moved);
    std::sort(sizes.begin(), sizes.end());
    CyclePath& host = slower_.paths.front();
    const Bytes all = host.room;
    double passing = 0;
    for (const Bytes size : sizes) {
      passing += static_cast<double>(size);
      host.room = std::max<Bytes>(0, all - 2 * Bytes{TransferStyle{}.staging} * host.held(size));
      for (std::size_t path = 1; path < slower_.paths.size(); ++path) slower_.paths[path].largest = size;
      // Sizes may be rounded up to twice as much on the host.
      const double beyond = static_cast<double>(cycle.peak() - budget_) - static_cast<double>(host.room) / 2;
      if (passing >= kSpare * beyond) return;
    }
  }

  bool goes_deep() const { return settings_.search && !settings_.roughly; }
  std::size_t peaks() const { return settings_.search ? kPeaksOfBound : kFirstPeaks; }
  std::size_t peaks_in_order() const {
    return std::clamp(kSlotsAtPeaks / base_.program.slots.size(), kFirstPeaks, peaks());
  }
  bool is_long() const {
    return best_.moves.fits && work_ > std::max(kMostWorkInAll, kMostWorkOfSlot * base_.program.slots.size());
  }
  bool is_enough() const { return is_near_bound() || (!settings_.search && is_shorter_than(kShort)); }
  bool is_shorter_than(double times) const { return best_.moves.fits && best_.moves.seconds <= times * ideal_; }
  bool is_near_bound() const { return best_.moves.fits && best_.moves.seconds <= bound_ * kNear; }

  void attempt(std::size_t many) {
    if (is_long()) return;
    if (const auto [at, is_new] = seen_.insert({many, 0}); !is_new) return;
    Attempt one{many, cycle_with_reruns(p_, base_, candidates_, many), {}};
    const StepCycle cycle(one.reruns.step.program);
    SearchEffort effort = settings_.search ? kQuick : kQuickest;
    effort.finest = settings_.finest;
    effort.goes_on = !settings_.search;
    effort.others = settings_.others;
    effort.worth_seconds = best_.moves.fits ? best_.moves.seconds : settings_.worth_seconds;
    if (to_seconds(cycle.turn()) >= effort.worth_seconds) return;
    MovesBound bound;
    bound.seconds = to_seconds(cycle.turn());
    if (settings_.search)
      bound = moves_bound(cycle, slower_, budget_);
    else if (many == 0)
      bound.seconds = std::max(bound.seconds, moves_seconds_);
    else if (best_.moves.fits)
      bound = moves_bound(cycle, slower_, budget_, kPeaksToRuleOut);
    if (bound.seconds >= effort.worth_seconds) return;
    one.moves = find_moves(cycle, slower_, budget_, bound, effort);
    seen_[many] = one.moves.fits ? one.moves.seconds : 0;
    tried_ += one.moves.tried;
    work_ += one.moves.work;
    if (!one.moves.fits) return;
    if (!best_.moves.fits || one.moves.seconds < best_.moves.seconds) std::swap(one, best_);
    if (!one.moves.fits) return;
    next_.push_back(std::move(one));
    std::sort(next_.begin(), next_.end(),
              [](const Attempt& a, const Attempt& b) { return a.moves.seconds < b.moves.seconds; });
    if (next_.size() > kNext) next_.resize(kNext);
  }

  // How many candidates make up the share of their bytes.
  std::size_t many_of(double share) const {
    Bytes all = 0, sum = 0;
    for (const RerunCandidate& c : candidates_) all += p_.held(c.gap.storage);
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      if (static_cast<double>(sum) >= share * static_cast<double>(all)) return i;
      sum += p_.held(candidates_[i].gap.storage);
    }
    return candidates_.size();
  }

  void compare(const RerunLimits& limits, const RerunOrderSettings& ordering) {
    const RerunOrder& order = made_.order(slower_, settings_.robust, budget_, limits, ordering);
    const auto favoured = static_cast<double>(order.best);
    begin(order.candidates);
    for (const double times : goes_deep() ? std::span<const double>(kTimes) : kFirstTimes)
      attempt_if_open(times * favoured);
    attempt_shares();
    if (goes_deep()) bisect();
  }

  void begin(std::vector<RerunCandidate> candidates) {
    candidates_ = std::move(candidates);
    seen_.clear();
  }

  void attempt_if_open(double many) {
    if (!is_enough()) attempt(std::min(static_cast<std::size_t>(many), candidates_.size()));
  }

  void attempt_shares() {
    const std::span<const double> shares = settings_.search ? std::span<const double>(kShares) : kFirstShares;
    for (const double share : shares) {
      if ((settings_.search ? best_.moves.fits : is_shorter_than(kShort)) || candidates_.empty()) break;
      attempt(many_of(share));
    }
  }

  // Between the best and those next to it.
  void bisect() {
    for (int i = 0; i < kBisections && best_.moves.fits && !is_near_bound(); ++i) {
      const auto here = seen_.find(best_.many);
      if (here == seen_.end()) break;  // the best is of another order, and nothing here is near it
      const auto next = std::next(here);
      if (here != seen_.begin()) attempt((std::prev(here)->first + here->first) / 2);
      if (next != seen_.end()) attempt((here->first + next->first) / 2);
    }
  }

  void finish() {
    if (is_enough() || (!goes_deep() && best_.moves.fits)) return;
    if (!best_.moves.fits) best_.reruns = cycle_with_reruns(p_, base_, candidates_, candidates_.size());
    search_on(best_);
    for (Attempt& next : next_) {
      if (is_near_bound()) return;
      search_on(next);
      if (next.moves.seconds < best_.moves.seconds) std::swap(next, best_);
    }
  }

  void search_on(Attempt& attempt) {
    if (is_long()) return;
    const StepCycle cycle(attempt.reruns.step.program);
    const MovesBound bound = moves_bound(cycle, slower_, budget_);
    if (best_.moves.fits && bound.seconds >= best_.moves.seconds) return;
    SearchEffort effort = !settings_.search ? kQuick : settings_.others > 0 ? kBeside : SearchEffort{};
    effort.finest = settings_.finest;
    effort.goes_on = !settings_.search;
    effort.others = settings_.others;
    FoundMoves searched = find_moves(cycle, slower_, budget_, bound, effort);
    tried_ += searched.tried;
    work_ += searched.work;
    if (searched.fits && (!attempt.moves.fits || searched.seconds < attempt.moves.seconds))
      attempt.moves = std::move(searched);
  }

  StepPlan filled(StepPlan result) {
    result.tried = tried_;
    result.work = work_;
    result.fits = best_.moves.fits;
    result.too_slow = !result.fits && settings_.worth_seconds < StepPlanSettings::kAnySeconds;
    if (!result.fits) return result;
    const StepCycle cycle(best_.reruns.step.program);
    result.plan = plan_of(best_, cycle, best_.moves.plan);
    result.seconds = best_.moves.seconds;
    result.moves = best_.moves.plan.moves.size();
    result.reruns = best_.reruns.reruns.size();
    for (const CycleSlot& slot : cycle.slots()) result.rerun_seconds += to_seconds(slot.work);
    for (const CycleSlot& slot : base_.program.slots) result.rerun_seconds -= to_seconds(slot.work);
    if (settings_.others > 0) add_others(cycle, result);
    return result;
  }

  MemoryPlan plan_of(const Attempt& attempt, const StepCycle& cycle, const MovePlan& moves) const {
    std::vector<TransferStyle> tiers;
    for (const std::string& tier : settings_.tiers) tiers.push_back(style_of(tier));
    MemoryPlan plan = memory_plan_of(attempt.reruns.step, cycle, moves, std::move(tiers));
    plan.reruns = attempt.reruns.reruns;
    plan.keeps = attempt.reruns.keeps;
    join(attempt.reruns.decisions, plan);
    return plan;
  }

  // Of the best set of re-runs, and of those next to it.
  void add_others(const StepCycle& cycle_of_best, StepPlan& result) const {
    struct Other {
      double seconds = 0;
      const Attempt* attempt = nullptr;
      const MovePlan* moves = nullptr;
    };
    std::vector<Other> all;
    const auto add = [&](const Attempt& attempt) {
      for (const ReplayedMoves& one : attempt.moves.others) all.push_back({one.seconds, &attempt, &one.plan});
    };
    add(best_);
    for (const Attempt& next : next_) {
      if (next.moves.seconds > best_.moves.seconds * kAlike) continue;
      all.push_back({next.moves.seconds, &next, &next.moves.plan});
      add(next);
    }
    std::ranges::stable_sort(all, {}, &Other::seconds);
    if (all.size() > settings_.others) all.resize(settings_.others);
    for (const Other& one : all) {
      const bool is_best = one.attempt == &best_;
      result.others.push_back(is_best ? plan_of(*one.attempt, cycle_of_best, *one.moves)
                                      : plan_of(*one.attempt, StepCycle(one.attempt->reruns.step.program), *one.moves));
    }
  }

  // Where there is no way of its own, copies are staged in the host's memory.
  TransferStyle style_of(const std::string& name) const {
    const int tier = machine_.tier(name);
    TransferStyle style;
    style.tier = name;
    style.tier_class = machine_.tiers[static_cast<std::size_t>(tier)].tier_class;
    style.pinned = true;
    if (!has_way(name)) style.through = "host";
    return style;
  }
  bool has_way(const std::string& name) const {
    return machine_.route(machine_.tier("hbm"), machine_.tier(name), false) != nullptr;
  }
  bool is_staged() const {
    return !std::all_of(settings_.tiers.begin(), settings_.tiers.end(),
                        [&](const std::string& name) { return has_way(name); });
  }

  // What is made again may be moved, too.
  static void join(const std::vector<StorageDecision>& more, MemoryPlan& plan) {
    for (const StorageDecision& d : more) {
      const auto there = std::find_if(plan.storages.begin(), plan.storages.end(),
                                      [&](const StorageDecision& other) { return other.storage == d.storage; });
      if (there == plan.storages.end()) {
        plan.storages.push_back(d);
        continue;
      }
      there->drops.insert(there->drops.end(), d.drops.begin(), d.drops.end());
      std::sort(there->drops.begin(), there->drops.end(),
                [](const PlannedDrop& a, const PlannedDrop& b) { return a.at < b.at; });
    }
  }

  const StepProfile& p_;
  const Machine& machine_;
  const Bytes budget_;
  const StepPlanSettings& settings_;
  const CycleLinks links_;
  const PlanningValues made_;
  const CycledStep& base_;
  CycleLinks slower_;  // as they are planned for: slower by the settings' share, less what staging takes of the host
  std::vector<RerunCandidate> candidates_;
  std::map<std::size_t, double> seen_;  // by candidates made again: seconds; 0 = does not fit
  Attempt best_;
  std::vector<Attempt> next_;  // the next best, fastest first
  double bound_ = 0;           // seconds that no plan is faster than
  double ideal_ = 0;           // with unlimited memory
  double moves_seconds_ = 0;   // that no plan is faster than that only moves
  std::uint32_t tried_ = 0;
  std::uint64_t work_ = 0;  // FoundMoves::work
};

}  // namespace

StepPlan plan_step(const StepProfile& profile, Bytes budget, const StepPlanSettings& settings) {
  return Planning(profile, budget, settings).run();
}

}  // namespace memwall
