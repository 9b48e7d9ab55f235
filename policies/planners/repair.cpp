#include "policies/planners/repair.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "policies/plan/plan_check.h"
#include "policies/profile/latest_safe.h"
#include "sim/error.h"

namespace memwall {
namespace {

constexpr int kMostAlike = 5;
// Where a block finds no place in one piece whatever is asked for, plans for every hundredth of the budget less are
// looked at, down to the share: which of them leave it a place only trying shows. Of large steps fewer, as many as
// have so many ops together; and so many behind the first that fits.
constexpr double kLeastShare = 0.7;
constexpr std::size_t kMostOpsInPieces = 100'000;
constexpr int kMoreInPieces = 4;

// With as much device memory as the budget, beside what is not the step's.
Machine machine_of(const StepProfile& profile, const Budget& budget) {
  Machine machine = profile.machine();
  Tier& device = machine.tiers[static_cast<std::size_t>(machine.tier("hbm"))];
  device.compression_ratio = 1;
  device.capacity = device.unavailable + profile.untracked() + budget.device;
  return machine;
}

// A planner's mistake is a sentence, whoever wrote it.
void require_carried_out(const StepProfile& profile, const MemoryPlan& plan) {
  const std::vector<std::string> problems = check_plan(plan, profile.trace(), profile.flow());
  if (!problems.empty()) throw UsageError("The planner's plan cannot be carried out: " + problems.front());
}

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
  // `last`: the plan for asked(). Is there something left to try?
  bool next(const RepairedPlan& last) {
    const Bytes over = last.over;
    if (over == 0 && last.is_held_up() && !is_known_) {
      // It fits, and the allocator gives memory back and obtains it anew all the time: with less there is peace.
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

// The fastest of those that need least beyond the budget: nothing, or the least to within a percent of it.
RepairedPlan best_of(std::vector<RepairedPlan>& tried, const Budget& budget) {
  Bytes least = tried.front().over;
  for (const RepairedPlan& one : tried) least = std::min(least, one.over);
  const Bytes most = least == 0 ? 0 : least + budget.device / 100;
  RepairedPlan* best = nullptr;
  for (RepairedPlan& one : tried)
    if (one.over <= most && (best == nullptr || one.step_time < best->step_time)) best = &one;
  return std::move(*best);
}

// Without the allocator's calls to the device, slower by 1 %.
bool is_slower_at_peace(const RepairedPlan& one, Duration worth) {
  return worth < kNever && one.peace() > worth + worth / 100;
}

RepairedPlan tried_plan(MemoryPlan plan, const StepProfile& profile, const Machine& machine, const Pricer& pricer,
                        const PlanAllocator& allocator) {
  RepairedPlan tried;
  const SimulationResult result = simulate_plan_on(profile, plan, machine, pricer, allocator).result;
  const auto hbm = static_cast<std::size_t>(machine.tier("hbm"));
  const TierResult& device = result.tiers[hbm];
  tried.step_time = result.end;
  for (std::size_t tier = 0; tier < result.tiers.size(); ++tier)
    if (tier != hbm) tried.over_beside += result.tiers[tier].missing;
  tried.over = device.missing + tried.over_beside;
  tried.in_pieces = device.missing > 0 && device.peak_allocated <= machine.tiers[hbm].holds();
  tried.held_up = device.device_calls;
  tried.is_untouched = plan.storages.empty() && plan.reruns.empty() && plan.keeps.empty();
  if (tried.is_untouched) tried.held_up = std::max(tried.held_up, tried.step_time - profile.step_time());
  tried.plan = std::move(plan);
  return tried;
}

// Tries plans with the allocator, on a device of the budget's size.
class Trials {
 public:
  Trials(const StepProfile& profile, const Budget& budget, const Pricer& pricer, const PlanRestriction& restriction)
      : profile_(profile),
        budget_(budget),
        machine_(machine_of(profile, budget)),
        pricer_(pricer),
        restriction_(restriction) {}

  RepairedPlan untouched() const { return tried_plan({}, profile_, machine_, pricer_, budget_.allocator); }

  ProposedPlans proposed(const Planner& planner, Bytes asked, Duration worth) const {
    return planner(profile_, {asked, budget_.allocator, worth}, profile_.machine(), pricer_);
  }

  // The plan, checked, and what the restriction makes of it. `issues`: copies back are issued where no restriction asks
  // for that.
  RestrictedPlan restricted(MemoryPlan plan, bool issues) const {
    if (issues || restriction_) plan = issued_latest_safe(std::move(plan), profile_);
    require_carried_out(profile_, plan);
    return restriction_ ? restriction_(std::move(plan), profile_.trace()) : RestrictedPlan{std::move(plan), "", ""};
  }

  RepairedPlan tried(RestrictedPlan plan, Bytes asked) const {
    RepairedPlan made = tried_plan(std::move(plan.plan), profile_, machine_, pricer_, budget_.allocator);
    made.restricted = std::move(plan.note);
    made.asked = asked;
    return made;
  }

  // The best of those that were proposed for one budget; no more are tried than until one keeps to the budget at peace.
  RepairedPlan best_proposed(RestrictedPlan best, ProposedPlans proposed, Bytes asked) const {
    std::vector<RepairedPlan> alike;
    const auto add = [&](RestrictedPlan plan) {
      alike.push_back(tried(std::move(plan), asked));
      alike.back().planned = proposed.planned;
    };
    add(std::move(best));
    for (MemoryPlan& other : proposed.others) {
      if (alike.back().over_beside > 0 || (alike.back().over == 0 && !alike.back().is_held_up())) break;
      if (RestrictedPlan left = restricted(std::move(other), true); left.refusal.empty()) add(std::move(left));
    }
    return best_of(alike, budget_);
  }

  RepairedPlan estimated(RepairedPlan best) const {
    best.estimate = estimate_plan(profile_, best.plan, machine_, pricer_, budget_.allocator);
    return best;
  }

 private:
  const StepProfile& profile_;
  const Budget& budget_;
  const Machine machine_;
  const Pricer& pricer_;
  const PlanRestriction& restriction_;
};

bool all_lack_one_piece(const std::vector<RepairedPlan>& tried) {
  const auto is_in_pieces = [](const RepairedPlan& one) { return one.in_pieces && one.over_beside == 0; };
  return std::ranges::none_of(tried, [](const RepairedPlan& one) { return one.over == 0; }) &&
         std::ranges::any_of(tried, is_in_pieces);
}

}  // namespace

RepairedPlan repaired_plan(const Planner& planner, const StepProfile& profile, const Budget& budget,
                           const Pricer& pricer, const PlanRestriction& restriction, Bytes first_asked, int most_tries,
                           Duration worth, std::uint64_t most_work) {
  const Trials trials(profile, budget, pricer, restriction);
  std::vector<RepairedPlan> tried;
  tried.push_back(trials.untouched());
  Search search(budget.device, first_asked);
  std::string refusal;
  MemoryPlan last;
  std::uint64_t work = 0;
  int same = 0;  // plans in a row that were as the one before
  const bool leaves = tried.front().over == 0 && !tried.front().is_held_up();
  for (int i = 0; !leaves && i < most_tries; ++i) {
    if (work > 0 && work >= most_work && worth < kNever) break;
    ProposedPlans proposed = trials.proposed(planner, search.asked(), worth);
    work += proposed.work;
    if (proposed.too_slow && search.raise()) continue;
    if (proposed.too_slow) break;
    RestrictedPlan asked = trials.restricted(std::move(proposed.best), true);
    if (!asked.refusal.empty()) refusal = asked.refusal;
    same = i > 0 && asked.plan == last ? same + 1 : 0;
    if (same == kMostAlike) break;  // the planner has nothing more to give
    if (same == 0) {
      last = asked.plan;
      tried.push_back(trials.best_proposed(std::move(asked), std::move(proposed), search.asked()));
    }
    // Where it found a plan for more, it has none for less.
    if (tried.back().is_untouched && tried[tried.size() - 2].asked > 0) break;
    // With less on the device still more would lie beside it.
    if (tried.back().over_beside > 0 || !search.next(tried.back())) break;
    if (tried.back().over == 0) worth = std::min(worth, tried.back().step_time);
    if (search.asked() < tried.back().asked && is_slower_at_peace(tried.back(), worth)) break;
  }
  const bool lacks_one_piece = all_lack_one_piece(tried);
  RepairedPlan best = best_of(tried, budget);
  best.lacks_one_piece = lacks_one_piece;
  best.work = work;
  if (best.is_untouched && best.over > 0) best.restricted = std::move(refusal);
  return trials.estimated(std::move(best));
}

std::optional<RepairedPlan> plan_of_one_piece(const Planner& planner, const StepProfile& profile, const Budget& budget,
                                              const Pricer& pricer, const PlanRestriction& restriction) {
  const Trials trials(profile, budget, pricer, restriction);
  std::vector<RepairedPlan> fitting;
  std::size_t ops = 0;
  int left = kMoreInPieces;
  for (int percent = 99; percent >= 100 * kLeastShare && ops < kMostOpsInPieces && left > 0; --percent) {
    const auto asked = static_cast<Bytes>(static_cast<double>(budget.device) * percent / 100);
    ops += profile.trace().ops.size();
    RepairedPlan tried = trials.tried(trials.restricted(trials.proposed(planner, asked, kNever).best, true), asked);
    if (tried.is_untouched) break;
    if (!fitting.empty()) --left;
    if (tried.over == 0) fitting.push_back(std::move(tried));
  }
  if (fitting.empty()) return std::nullopt;
  return trials.estimated(best_of(fitting, budget));
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
  const Trials trials(profile, budget, pricer, restriction);
  RestrictedPlan asked = trials.restricted(trials.proposed(planner, budget.device, kNever).best, false);
  std::string refusal = asked.refusal;
  RepairedPlan made = trials.tried(std::move(asked), 0);
  if (!refusal.empty()) made.restricted = std::move(refusal);
  return trials.estimated(std::move(made));
}

}  // namespace memwall
