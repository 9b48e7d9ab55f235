#include "policies/planners/repair.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "policies/planners/plan_trials.h"
#include "policies/profile/planned_memory.h"
#include "sim/side_by_side.h"

namespace memwall {
namespace {

constexpr int kMostAlike = 5;
// So many plans of one planner at most that are in pieces are tried with more room, fewer where one is known that keeps
// to the budget and is not slower than the fastest of them by this factor; and so many for one budget.
constexpr double kFarSlower = 1.5;
constexpr std::size_t kMostInPieces = 10, kFewInPieces = 6, kMostAlikeInPieces = 2;
// These are tried so many at once, whatever the computer, so that plans are the same on all.
constexpr std::size_t kRoomsAtOnce = 2;
// Such a plan has to be faster than what is known by this part of it, before there is more room.
constexpr int kWorthRoom = 200;
// A plan in full that needs more than the budget by at most this part of it is asked for again, for so much less.
constexpr Bytes kNearlyFits = 50, kLeastLess = 2000;
// More memory is asked for where a planner counts its plan as better by this part of the step.
constexpr double kWorthMore = 0.002;
// Of plans in full as many are asked for as where the best could be shorter by this part, and for this part less.
// Where plans for more are counted as shorter by the other part, these come first.
constexpr double kWorthLooking = 0.01, kMuchShorter = 0.2;
constexpr Bytes kPartLess = 20;
// Where no plan keeps to the budget, plans for less are looked at: for so many budgets between the step's own peak and
// this part of it, each by the same factor less than the one before; behind the first that fits for some between that
// and the one before, and for so many more. Of large steps fewer, as many as have so many ops together.
constexpr double kLeastForLess = 0.15;
constexpr std::size_t kMostForLess = 96, kFewestForLess = 12, kMostOpsForLess = 1'000'000;
constexpr int kMoreForLess = 4, kPartsForLess = 4;
// So many plans in a row that are counted as no better than what is known end that; those that are counted as shorter
// than this part of it do not.
constexpr int kMostSlower = 3;
constexpr double kMuchBetter = 0.9;

// What to ask for next: down until a plan fits, then between that and the last that did not. Where the first fits and
// the allocator's calls to the device hold it up, a little further down.
class Search {
 public:
  Search(Bytes budget, Bytes first)
      : asked_(first > 0 ? first : budget),
        closest_(budget / 200),
        least_step_(budget / 100),
        piece_step_(budget / 64),
        is_known_(first > 0),
        fails_(first > 0 && first < budget ? budget : kUnknown) {}

  Bytes asked() const { return asked_; }
  Bytes fits() const { return fits_; }    // the last that fitted; kUnknown: none
  Bytes fails() const { return fails_; }  // the last that did not
  // `last`: the plan for asked(). Is there something left to try?
  bool next(const RepairedPlan& last) {
    const Bytes over = last.over;
    if (over == 0 && last.is_held_up() && !is_known_) {
      // It fits, and the allocator gives memory back and obtains it anew all the time: with less it does not.
      fails_ = fails_ == kUnknown ? asked_ : std::min(fails_, asked_);
      if (fits_ == kUnknown) {
        asked_ -= asked_ / (last.is_untouched ? 8 : 20);  // nothing left yet: what is asked for is far too much
        return asked_ > closest_;
      }
    } else {
      (over == 0 ? fits_ : fails_) = asked_;
    }
    if (fits_ != kUnknown && fails_ == kUnknown) return false;
    if (fits_ != kUnknown) {
      asked_ = fits_ + (fails_ - fits_) / 2;
      return fails_ - fits_ > closest_;
    }
    // What is in pieces does not shrink by what is missing: each time more is asked for. A block that finds no place in
    // one piece tells its own size, not what is too much. Where the first plan took a few kilobytes too much, doubling
    // those would keep all tries close to the budget.
    const Bytes least = less_ == 0 ? 0 : least_step_;
    less_ = std::max(
        {last.in_pieces ? std::min(over, piece_step_) : over, last.in_pieces ? less_ + less_ / 2 : 2 * less_, least});
    asked_ = less_ < asked_ ? asked_ - less_ : asked_ / 2;
    return asked_ > closest_;
  }
  // The same where no plan for asked() is worth it: a larger one may have one.
  bool raise() {
    fits_ = asked_;
    if (fails_ == kUnknown) return false;
    asked_ = fits_ + (fails_ - fits_) / 2;
    return fails_ - fits_ > closest_;
  }

 private:
  static constexpr Bytes kUnknown = -1;
  Bytes asked_, closest_, least_step_, piece_step_, less_ = 0;
  bool is_known_;          // another planner's plans have shown what to ask for
  Bytes fits_ = kUnknown;  // the last that fitted
  Bytes fails_;            // the last that did not: before anything is known, the budget where less is asked for first
};

// Without the allocator's calls to the device, slower by 1 %.
bool is_slower_without_calls(const RepairedPlan& one, Duration worth) {
  return worth < kNever && one.step_without_calls() > worth + worth / 100;
}

// Asks one planner, for one budget after the other.
class Repairing {
 public:
  Repairing(const Planner& planner, const PlanTrials& trials, const StepProfile& profile, const Budget& budget,
            const RepairEffort& effort)
      : planner_(planner), trials_(trials), profile_(profile), budget_(budget), effort_(effort), worth_(effort.worth) {}

  RepairedPlan run() {
    tried_.push_back(effort_.untouched != nullptr ? *effort_.untouched : trials_.untouched());
    if (!is_enough() && (tried_.front().over > 0 || tried_.front().is_held_up())) {
      look_around();
      make_room();
      if (effort_.roughly_first) {
        look_closely();
        make_room();
      }
    }
    RepairedPlan best = best_of(tried_, budget_);
    best.work = work_;
    if (best.is_untouched && best.over > 0) best.restricted = std::move(refusal_);
    return trials_.estimated(std::move(best));
  }

 private:
  // RepairEffort::any is known.
  bool is_enough() const {
    return effort_.any && std::ranges::any_of(tried_, [](const RepairedPlan& one) { return one.over == 0; });
  }
  bool is_exhausted() const { return is_enough() || (work_ > 0 && work_ >= effort_.most_work && worth_ < kNever); }

  void look_around() {
    Search search(budget_.device, effort_.first_asked);
    for (int i = 0; i < effort_.most_tries && !is_exhausted(); ++i) {
      ProposedPlans proposed = trials_.proposed(planner_, search.asked(), worth_, effort_.roughly_first);
      work_ += proposed.work;
      if (proposed.too_slow) {
        if (!search.raise()) break;
        continue;
      }
      const Duration planned = proposed.planned;
      if (!try_proposed(std::move(proposed), search.asked())) break;
      // Where it found a plan for more, it has none for less.
      if (tried_.back().is_untouched && tried_[tried_.size() - 2].asked > 0) break;
      // With less on the device still more would lie beside it.
      if (tried_.back().over_beside > 0) break;
      planned_[search.asked()] = planned;
      if (!search.next(tried_.back())) break;
      if (tried_.back().over == 0) worth_ = std::min(worth_, tried_.back().step_time);
      if (is_not_worth(search)) break;
    }
  }

  // False: the planner has nothing more to give.
  bool try_proposed(ProposedPlans proposed, Bytes asked) {
    RestrictedPlan plan = trials_.restricted(std::move(proposed.best), true);
    if (!plan.refusal.empty()) refusal_ = plan.refusal;
    same_ = tried_.size() > 1 && plan.plan == last_ ? same_ + 1 : 0;
    if (same_ > 0) return same_ < kMostAlike && planned_peak(profile_, plan.plan) <= asked;
    last_ = plan.plan;
    tried_.push_back(trials_.best_proposed(std::move(plan), std::move(proposed), asked, in_pieces_));
    return true;
  }

  bool is_not_worth(const Search& search) const {
    const RepairedPlan& last = tried_.back();
    if (search.asked() < last.asked) return is_slower_without_calls(last, worth_);
    // Between plans for less and for more: no better than the latter.
    const auto less = planned_.find(search.fits()), more = planned_.find(search.fails());
    if (less == planned_.end() || more == planned_.end()) return false;
    if (last.is_held_up() && less->second == Duration{}) return false;  // the planner does not count steps
    return to_seconds(less->second - more->second) < kWorthMore * to_seconds(less->second);
  }

  // Plans that are in pieces alone: the fastest first, as long as they are faster than what keeps to the budget.
  void make_room() {
    if (!effort_.makes_room || in_pieces_.empty() || is_enough()) return;
    std::ranges::stable_sort(in_pieces_, {}, &RepairedPlan::step_time);
    std::map<Bytes, std::size_t> seen;  // by what was asked for
    const bool is_near = worth_ < kNever && to_seconds(worth_) < kFarSlower * to_seconds(in_pieces_.front().step_time);
    const std::size_t most = is_near ? kFewInPieces : kMostInPieces;
    std::vector<const RepairedPlan*> chosen;
    for (const RepairedPlan& one : in_pieces_)
      if (chosen.size() < most && seen[one.asked]++ < kMostAlikeInPieces) chosen.push_back(&one);
    for (std::size_t first = 0; first < chosen.size(); first += kRoomsAtOnce) {
      const std::size_t end = std::min(first + kRoomsAtOnce, chosen.size());
      if (worth_ < kNever && chosen[first]->step_time >= worth_ - worth_ / kWorthRoom) break;
      make_room(std::vector<const RepairedPlan*>(chosen.begin() + static_cast<std::ptrdiff_t>(first),
                                                 chosen.begin() + static_cast<std::ptrdiff_t>(end)));
    }
    in_pieces_.clear();
  }

  void make_room(const std::vector<const RepairedPlan*>& plans) {
    std::vector<std::optional<RepairedPlan>> made(plans.size());
    std::vector<std::function<void()>> calls;
    for (std::size_t i = 0; i < plans.size(); ++i)
      calls.emplace_back([&, i] { made[i] = trials_.with_room(*plans[i], worth_); });
    call_side_by_side(calls);
    for (std::optional<RepairedPlan>& one : made) {
      if (!one || one->step_time >= worth_) continue;
      worth_ = one->step_time;
      tried_.push_back(std::move(*one));
    }
  }

  // What was made roughly shows what to ask for in full, and for more up to the budget. Where the allocator's calls to
  // the device hold such plans up, for less, too; then between what is best and the budget, as long as plans for more
  // are counted as better.
  void look_closely() {
    if (tried_[best_index(tried_, budget_)].is_untouched) return;
    Bytes least = tried_[best_index(tried_, budget_)].asked, fails = budget_.device;
    std::vector<Bytes> next{least, least + (fails - least) / 2};
    for (int left = effort_.most_in_full; left > 0;) {
      next.resize(
          std::min<std::size_t>(next.size(), static_cast<std::size_t>(std::min(left, effort_.in_full_at_once))));
      left -= static_cast<int>(next.size());
      next.erase(std::unique(next.begin(), next.end()), next.end());
      const std::size_t before = tried_.size();
      if (!ask_in_full(next)) return;
      const std::vector<RepairedPlan> asked(tried_.begin() + static_cast<std::ptrdiff_t>(before), tried_.end());
      make_room();
      next = next_in_full(asked, least, fails);
      if (next.empty()) return;
    }
  }

  // What to ask for behind these plans in full; nothing where nothing better is to be expected.
  std::vector<Bytes> next_in_full(const std::vector<RepairedPlan>& asked, Bytes& least, Bytes& fails) const {
    for (const RepairedPlan& one : asked)
      if (nearly_fits(one)) return {one.asked - one.over - budget_.device / kLeastLess};
    const RepairedPlan& best = tried_[best_index(tried_, budget_)];
    if (best.over > 0) return {};
    bool is_shorter_for_less = false;
    for (const RepairedPlan& one : asked) {
      if ((one.over > 0 || one.is_held_up()) && one.asked > best.asked) fails = std::min(fails, one.asked);
      is_shorter_for_less |= is_shorter(one.planned, best, kWorthLooking);
    }
    const Duration highest = planned_.rbegin()->second;
    const bool goes_up = best.asked < fails && is_shorter(highest, best, kWorthLooking);
    const bool goes_down = best.is_held_up() && is_shorter_for_less;
    const Bytes more = best.asked + (fails - best.asked) / 2, less = least - least / kPartLess;
    if (goes_down) least = less;
    if (goes_up && goes_down)
      return is_shorter(highest, best, kMuchShorter) ? std::vector<Bytes>{more, less} : std::vector<Bytes>{less, more};
    if (goes_down) return {less, less - less / kPartLess};
    if (goes_up) return {more, more + (fails - more) / 2};
    return {};
  }

  bool nearly_fits(const RepairedPlan& last) const {
    return last.over > 0 && last.over_beside == 0 && !last.in_pieces && last.over <= budget_.device / kNearlyFits &&
           last.step_time < worth_;
  }

  struct InFull {
    std::optional<ProposedPlans> proposed{};
    std::optional<RestrictedPlan> plan{};
    RepairedPlan tried{};
    std::vector<RepairedPlan> in_pieces{};
  };

  InFull made_in_full(Bytes asked) const {
    InFull made;
    made.proposed = trials_.proposed(planner_, asked, worth_);
    if (made.proposed->too_slow) return made;
    made.plan = trials_.restricted(made.proposed->best, true);
    made.tried = trials_.best_proposed(*made.plan, *made.proposed, asked, made.in_pieces);
    return made;
  }

  // False: the planner has nothing more to give.
  bool ask_in_full(const std::vector<Bytes>& budgets) {
    if (is_exhausted()) return false;
    std::vector<InFull> all(budgets.size());
    std::vector<std::function<void()>> calls;
    for (std::size_t i = 0; i < budgets.size(); ++i) calls.emplace_back([&, i] { all[i] = made_in_full(budgets[i]); });
    call_side_by_side(calls);
    bool is_any = false;
    for (InFull& one : all) {
      work_ += one.proposed->work;
      if (one.proposed->too_slow) continue;
      if (!one.plan->refusal.empty()) refusal_ = one.plan->refusal;
      if (tried_.size() > 1 && one.plan->plan == last_) continue;
      last_ = std::move(one.plan->plan);
      tried_.push_back(std::move(one.tried));
      in_pieces_.insert(in_pieces_.end(), one.in_pieces.begin(), one.in_pieces.end());
      if (tried_.back().over == 0) worth_ = std::min(worth_, tried_.back().step_time);
      is_any = true;
    }
    return is_any;
  }

  // Is what was planned shorter than the best plan by this part of it?
  static bool is_shorter(Duration planned, const RepairedPlan& best, double part) {
    return to_seconds(best.step_time - planned) > part * to_seconds(best.step_time);
  }

  const Planner& planner_;
  const PlanTrials& trials_;
  const StepProfile& profile_;
  const Budget& budget_;
  const RepairEffort& effort_;
  Duration worth_;
  std::vector<RepairedPlan> tried_, in_pieces_;
  std::map<Bytes, Duration> planned_;  // ProposedPlans::planned, by what was asked for
  MemoryPlan last_;
  int same_ = 0;  // plans in a row that were as the one before
  std::uint64_t work_ = 0;
  std::string refusal_;
};

}  // namespace

RepairedPlan untouched_plan(const StepProfile& profile, const Budget& budget, const Pricer& pricer) {
  return PlanTrials(profile, budget, pricer, {}).untouched();
}

RepairedPlan repaired_plan(const Planner& planner, const StepProfile& profile, const Budget& budget,
                           const Pricer& pricer, const PlanRestriction& restriction, const RepairEffort& effort) {
  const PlanTrials trials(profile, budget, pricer, restriction, effort.known);
  return Repairing(planner, trials, profile, budget, effort).run();
}

std::optional<RepairedPlan> plan_for_less(const Planner& planner, const StepProfile& profile, const Budget& budget,
                                          const Pricer& pricer, const PlanRestriction& restriction,
                                          const RepairEffort& effort) {
  const PlanTrials trials(profile, budget, pricer, restriction, effort.known);
  Duration worth = effort.worth;
  std::vector<RepairedPlan> fitting;
  Duration planned{};       // the last plan's step as the planner counts it; where it does not, `worth`
  Duration found = kNever;  // the fastest that keeps to the budget: what is known beside leaves plans as they are
  int slower = 0;           // plans in a row that the planner itself counts as no better
  // False: nothing is found for less.
  const auto ask = [&](Bytes asked) {
    ProposedPlans proposed = trials.proposed(planner, asked, found, true);
    if (proposed.too_slow) return false;
    planned = proposed.planned > Duration{} ? proposed.planned : worth;
    if (planned >= worth) return ++slower < kMostSlower;
    slower = 0;
    RepairedPlan tried = trials.tried(trials.restricted(std::move(proposed.best), true), asked);
    if (tried.is_untouched || tried.over_beside > 0) return false;
    if (effort.makes_room && tried.in_pieces)
      if (auto made = trials.with_room(tried, worth)) tried = std::move(*made);
    if (tried.over > 0) return true;
    found = std::min(found, tried.step_time);
    worth = std::min(worth, found);
    fitting.push_back(std::move(tried));
    return true;
  };
  const auto peak = static_cast<double>(PlannedMemory(profile).peak());
  const std::size_t asks = std::clamp(kMostOpsForLess / (profile.trace().ops.size() + 1), kFewestForLess, kMostForLess);
  const auto budget_of = [&](double i) {
    return static_cast<Bytes>(peak * std::pow(kLeastForLess, i / static_cast<double>(asks)));
  };
  const auto is_enough = [&] { return effort.any && !fitting.empty(); };
  int left = kMoreForLess;
  for (std::size_t i = 1; i <= asks && left > 0 && !is_enough(); ++i) {
    const auto place = static_cast<double>(i);
    if (budget_of(place) > budget.device) continue;
    const bool is_first = fitting.empty();
    if (!ask(budget_of(place))) break;
    if (!is_first && to_seconds(planned) >= kMuchBetter * to_seconds(worth)) --left;
    for (int part = 1; is_first && !fitting.empty() && !is_enough() && part < kPartsForLess; ++part)
      if (const Bytes asked = budget_of(place - part * 1.0 / kPartsForLess); asked <= budget.device) ask(asked);
  }
  if (fitting.empty()) return std::nullopt;
  return trials.estimated(best_of(fitting, budget));
}

std::optional<RepairedPlan> faster_plan(const Planner& planner, std::span<const Bytes> asked,
                                        const StepProfile& profile, const Budget& budget, const Pricer& pricer,
                                        const PlanRestriction& restriction, Duration worth, bool makes_room,
                                        const TriedPlans* known) {
  const PlanTrials trials(profile, budget, pricer, restriction, known);
  for (const Bytes bytes : asked) {
    ProposedPlans proposed = trials.proposed(planner, bytes, worth);
    if (proposed.too_slow) break;
    RestrictedPlan plan = trials.restricted(std::move(proposed.best), true);
    if (!plan.refusal.empty()) continue;
    RepairedPlan tried = trials.tried(std::move(plan), bytes);
    if (tried.is_untouched) break;
    if (makes_room && tried.in_pieces && tried.over_beside == 0)
      if (auto made = trials.with_room(tried, worth)) tried = std::move(*made);
    if (tried.over == 0 && tried.step_time < worth) return trials.estimated(std::move(tried));
  }
  return std::nullopt;
}

bool asks_other(const RepairedPlan& best, Duration least, double slower_by) {
  return best.over > 0 || to_seconds(best.step_time) > to_seconds(least) * (1 + slower_by);
}

bool takes_other(const RepairedPlan& best, const RepairedPlan& other, const Budget& budget) {
  if (other.over == 0) return best.over > 0 || other.step_time < best.step_time;
  return best.over > 0 && other.over + budget.device / 100 < best.over;
}

RepairedPlan plan_as_made(const Planner& planner, const StepProfile& profile, const Budget& budget,
                          const Pricer& pricer, const PlanRestriction& restriction) {
  const PlanTrials trials(profile, budget, pricer, restriction);
  RestrictedPlan asked = trials.restricted(trials.proposed(planner, budget.device, kNever).best, false);
  std::string refusal = asked.refusal;
  RepairedPlan made = trials.tried(std::move(asked), 0);
  if (!refusal.empty()) made.restricted = std::move(refusal);
  return trials.estimated(std::move(made));
}

}  // namespace memwall
