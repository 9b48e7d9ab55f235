// Regret: what each policy costs against the best of them that fits, and against the least time that any plan takes
// within the budget (study/budget_bound.h). Compared are the step without a memory plan, full checkpointing, offload of
// activations, the planner `plan`, and the memory plans of the scenario.
#pragma once

#include <string>
#include <vector>

#include "study/sweep/scenario_points.h"
#include "study/policy_comparison.h"

namespace memwall {

struct PolicyRegret {
  std::string why_none;           // a sentence; "" = there is a comparison
  PolicyComparison comparison{};  // at one budget
  std::string own{};      // the scenario's own memory plan among the policies, kNoPolicy, or "" = several together
  bool is_given = false;  // the budget was given; else it is what the device has for the step

  // Seconds more than the fastest that fits; REQUIRES: there is one, and the policy was not refused.
  double regret(std::size_t policy) const;
  // Seconds that the least time within the budget takes more for each byte less of it, by two bounds `share` apart: the
  // dual price of the budget. Nothing where there is no bound.
  std::optional<double> bound_seconds_per_byte{};
};

// `run`: of the scenario. Policies beneath the memory plans (batch, zero) are beneath those that are compared. `share`:
// of the budget, for its dual price.
PolicyRegret policy_regret(ScenarioPoints& points, const Scenario& scenario, const Run& run, double share,
                           Watch* watch = nullptr);

// The scenario without its memory plans, which stand in `plans` then, without budgets of their own; the first of these
// goes to `budget`, where the scenario has none.
Scenario without_plans(Scenario scenario, std::vector<std::string>& plans, std::string& budget);

}  // namespace memwall
