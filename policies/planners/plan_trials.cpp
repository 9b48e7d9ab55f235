#include "policies/planners/plan_trials.h"

#include <algorithm>
#include <string>
#include <utility>

#include "policies/plan/plan_check.h"
#include "policies/planners/room_in_one_piece.h"
#include "policies/profile/latest_safe.h"
#include "sim/error.h"

namespace memwall {
namespace {

// A block that finds no place in one piece is made room for so often in one plan: behind it may come another.
constexpr int kMostClearings = 8;
// Each time so large a part of the budget more is cleared.
constexpr Bytes kSpareEach = 200;

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

}  // namespace

// The fastest of those that need least beyond the budget: nothing, or the least to within a percent of it.
std::size_t best_index(const std::vector<RepairedPlan>& tried, const Budget& budget) {
  Bytes least = tried.front().over;
  for (const RepairedPlan& one : tried) least = std::min(least, one.over);
  const Bytes most = least == 0 ? 0 : least + budget.device / 100;
  std::size_t best = tried.size();
  for (std::size_t i = 0; i < tried.size(); ++i)
    if (tried[i].over <= most && (best == tried.size() || tried[i].step_time < tried[best].step_time)) best = i;
  return best;
}
RepairedPlan best_of(std::vector<RepairedPlan>& tried, const Budget& budget) {
  return std::move(tried[best_index(tried, budget)]);
}

PlanTrials::PlanTrials(const StepProfile& profile, const Budget& budget, const Pricer& pricer,
                       const PlanRestriction& restriction, const TriedPlans* known)
    : profile_(profile),
      budget_(budget),
      machine_(machine_of(profile, budget)),
      pricer_(pricer),
      restriction_(restriction),
      known_(known == nullptr ? own_ : *known) {}

// Without the plan.
RepairedPlan PlanTrials::simulated(const MemoryPlan& plan, SimulatedPlan& simulation) const {
  simulation = simulate_plan_on(profile_, plan, machine_, pricer_, budget_.allocator);
  RepairedPlan tried;
  const SimulationResult& result = simulation.result;
  const auto hbm = static_cast<std::size_t>(machine_.tier("hbm"));
  const TierResult& device = result.tiers[hbm];
  tried.step_time = result.end;
  for (std::size_t tier = 0; tier < result.tiers.size(); ++tier)
    if (tier != hbm) tried.over_beside += result.tiers[tier].missing;
  tried.over = device.missing + tried.over_beside;
  tried.in_pieces = device.missing > 0 && device.peak_allocated <= machine_.tiers[hbm].holds();
  tried.held_up = device.device_calls;
  tried.is_untouched = plan.storages.empty() && plan.reruns.empty() && plan.keeps.empty();
  if (tried.is_untouched) tried.held_up = std::max(tried.held_up, tried.step_time - profile_.step_time());
  return tried;
}

RepairedPlan PlanTrials::untouched() const { return tried({}, 0); }

ProposedPlans PlanTrials::proposed(const Planner& planner, Bytes asked, Duration worth, bool roughly) const {
  return planner(profile_, {asked, budget_.allocator, worth, roughly}, profile_.machine(), pricer_);
}

RestrictedPlan PlanTrials::restricted(MemoryPlan plan, bool issues) const {
  if (issues || restriction_) plan = issued_latest_safe(std::move(plan), profile_);
  if (restriction_ || !known_.has(plan)) require_carried_out(profile_, plan);
  return restriction_ ? restriction_(std::move(plan), profile_.trace()) : RestrictedPlan{std::move(plan), "", ""};
}

RepairedPlan PlanTrials::tried(RestrictedPlan plan, Bytes asked) const {
  RepairedPlan made = known_.get(std::move(plan.plan), [&](const MemoryPlan& one) {
    SimulatedPlan simulation;
    return simulated(one, simulation);
  });
  made.restricted = std::move(plan.note);
  made.asked = asked;
  return made;
}

std::optional<RepairedPlan> PlanTrials::with_room(const RepairedPlan& in_pieces, Duration worth) const {
  if (in_pieces.step_time >= worth) return std::nullopt;
  SimulatedPlan simulation;
  RepairedPlan made = simulated(in_pieces.plan, simulation);
  made.plan = in_pieces.plan;
  for (int clearing = 0; clearing < kMostClearings && made.in_pieces && made.step_time < worth; ++clearing) {
    auto cleared = with_room_in_one_piece(made.plan, simulation, profile_, machine_, budget_.allocator,
                                          clearing * (budget_.device / kSpareEach));
    if (!cleared) return std::nullopt;
    RestrictedPlan plan = restricted(std::move(*cleared), true);
    if (!plan.refusal.empty()) return std::nullopt;
    made = simulated(plan.plan, simulation);
    made.plan = std::move(plan.plan);
    made.restricted = std::move(plan.note);
  }
  if (made.over > 0 || made.step_time >= worth) return std::nullopt;
  made.asked = in_pieces.asked;
  made.planned = in_pieces.planned;
  return made;
}

RepairedPlan PlanTrials::best_proposed(RestrictedPlan best, ProposedPlans proposed, Bytes asked,
                                       std::vector<RepairedPlan>& in_pieces) const {
  std::vector<RepairedPlan> alike;
  const auto add = [&](RestrictedPlan plan) {
    alike.push_back(tried(std::move(plan), asked));
    alike.back().planned = proposed.planned;
    if (alike.back().in_pieces && alike.back().over_beside == 0) in_pieces.push_back(alike.back());
  };
  add(std::move(best));
  for (MemoryPlan& other : proposed.others) {
    if (alike.back().over_beside > 0 || (alike.back().over == 0 && !alike.back().is_held_up())) break;
    if (RestrictedPlan left = restricted(std::move(other), true); left.refusal.empty()) add(std::move(left));
  }
  return best_of(alike, budget_);
}

RepairedPlan PlanTrials::estimated(RepairedPlan best) const {
  best.estimate = estimate_plan(profile_, best.plan, machine_, pricer_, budget_.allocator);
  return best;
}

}  // namespace memwall
