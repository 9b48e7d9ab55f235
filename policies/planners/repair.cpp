#include "policies/planners/repair.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "policies/plan/plan_check.h"
#include "policies/profile/latest_safe.h"
#include "sim/error.h"

namespace memwall {
namespace {

constexpr int kMostTries = 8, kMostAlike = 5;

// With as much device memory as the budget, beside what is not the step's.
Machine machine_of(const StepProfile& profile, const Budget& budget) {
  Machine machine = profile.machine();
  Tier& device = machine.tiers[static_cast<std::size_t>(machine.tier("hbm"))];
  device.compression_ratio = 1;
  device.capacity = device.unavailable + profile.untracked() + budget.device;
  return machine;
}

// A planner's mistake is a sentence, whoever wrote the planner.
void require_carried_out(const StepProfile& profile, const MemoryPlan& plan) {
  const std::vector<std::string> problems = check_plan(plan, profile.trace(), profile.flow());
  if (!problems.empty()) throw UsageError("The planner's plan cannot be carried out: " + problems.front());
}

// What to ask for next: down until a plan fits, then between that and the last that did not. Where the first fits and
// the allocator's calls to the device hold it up, a little further down.
class Search {
 public:
  explicit Search(Bytes budget) : asked_(budget), closest_(budget / 200) {}

  Bytes asked() const { return asked_; }
  // `over`: what the plan for asked() needed beyond the budget; `held_up`: was it by the allocator? Is there something
  // left to try?
  bool next(Bytes over, bool held_up) {
    (over == 0 ? fits_ : fails_) = asked_;
    if (fits_ != kUnknown && fails_ == kUnknown) {
      if (!held_up) return false;
      asked_ -= asked_ / 20;
      return asked_ > closest_;
    }
    if (fits_ != kUnknown) {
      asked_ = fits_ + (fails_ - fits_) / 2;
      return fails_ - fits_ > closest_;
    }
    // What is in pieces does not shrink by what is missing: each time more is asked for.
    less_ = std::max(over, 2 * less_);
    asked_ = less_ < asked_ ? asked_ - less_ : asked_ / 2;
    return asked_ > closest_;
  }

 private:
  static constexpr Bytes kUnknown = -1;
  Bytes asked_, closest_, less_ = 0;
  Bytes fits_ = kUnknown, fails_ = kUnknown;  // the last that fitted, the last that did not
};

// Of two plans: what keeps to the budget, then what needs least beyond it, then the faster step.
bool is_better(const RepairedPlan& one, const RepairedPlan& other) {
  return std::tuple(one.over, one.step_time) < std::tuple(other.over, other.step_time);
}

RepairedPlan tried_plan(MemoryPlan plan, const StepProfile& profile, const Machine& machine, const Pricer& pricer) {
  require_carried_out(profile, plan);
  RepairedPlan tried;
  const SimulationResult result = simulate_plan_on(profile, plan, machine, pricer).result;
  const TierResult& device = result.tiers[static_cast<std::size_t>(machine.tier("hbm"))];
  tried.step_time = result.end;
  tried.over = device.missing;
  tried.held_up = device.device_calls;
  tried.plan = std::move(plan);
  return tried;
}

}  // namespace

RepairedPlan repaired_plan(const Planner& planner, const StepProfile& profile, const Budget& budget,
                           const Pricer& pricer) {
  const Machine machine = machine_of(profile, budget);
  RepairedPlan best, last;
  Search search(budget.device);
  int same = 0;  // plans in a row that were as the one before
  for (int i = 0; i < kMostTries; ++i) {
    MemoryPlan plan = issued_latest_safe(planner(profile, {search.asked()}, profile.machine(), pricer), profile);
    same = i > 0 && plan == last.plan ? same + 1 : 0;
    if (same == kMostAlike) break;  // the planner has nothing more to give
    if (same == 0) last = tried_plan(std::move(plan), profile, machine, pricer);
    if (i == 0 || is_better(last, best)) best = last;
    if (!search.next(last.over, last.held_up > last.step_time / 50)) break;
  }
  best.estimate = estimate_plan(profile, best.plan, machine, pricer);
  return best;
}

}  // namespace memwall
