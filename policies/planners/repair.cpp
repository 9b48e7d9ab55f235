#include "policies/planners/repair.h"

#include <algorithm>
#include <string>
#include <vector>

#include "policies/plan/plan_check.h"
#include "sim/error.h"

namespace memwall {
namespace {

constexpr int kMostTries = 8;

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

// What to ask for next: down until a plan fits, then between that and the last that did not.
class Search {
 public:
  explicit Search(Bytes budget) : asked_(budget), closest_(budget / 200) {}

  Bytes asked() const { return asked_; }
  // `over`: what the plan for asked() needed beyond the budget. Is there something left to try?
  bool next(Bytes over) {
    (over == 0 ? fits_ : fails_) = asked_;
    if (fits_ != kUnknown) {
      if (fails_ == kUnknown) return false;
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
  Bytes fits_ = kUnknown, fails_ = kUnknown;  // the most that fitted, the least that did not
};

}  // namespace

RepairedPlan repaired_plan(const Planner& planner, const StepProfile& profile, const Budget& budget,
                           const Pricer& pricer) {
  const Machine machine = machine_of(profile, budget);
  const auto device = static_cast<std::size_t>(machine.tier("hbm"));
  RepairedPlan best;
  Search search(budget.device);
  for (int i = 0; i < kMostTries; ++i) {
    RepairedPlan next;
    next.plan = planner(profile, {search.asked()}, profile.machine(), pricer);
    const bool is_same = i > 0 && next.plan == best.plan;
    if (is_same && best.over > 0) break;  // the planner has nothing more to give
    if (!is_same) {
      require_carried_out(profile, next.plan);
      next.estimate = estimate_plan(profile, next.plan, machine, pricer);
      next.over = next.estimate.tiers[device].missing;
    }
    const Bytes over = is_same ? 0 : next.over;
    if (i == 0 || (!is_same && (over == 0 || over < best.over))) best = std::move(next);
    if (!search.next(over)) break;
  }
  return best;
}

}  // namespace memwall
