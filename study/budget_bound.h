// The least time that a step takes within a budget of device memory, whoever plans: no plan that keeps its storages,
// moves them to the named tiers, or computes them again is faster in a step that repeats
// (policies/cycle/moves_bound.h). For a policy that changes the step's own work it says nothing (study/step_work.h).
#pragma once

#include <string>
#include <vector>

#include "traces/run/run.h"

namespace memwall {

struct BudgetBound {
  bool is_possible = true;  // false: what one op uses is more than the budget
  Bytes least_budget = 0;   // that is possible
  Duration step_time{};     // mean over the steps; where it is possible
};

struct BudgetBounds {
  std::string why_none;              // a sentence; "" = there are bounds
  std::vector<BudgetBound> at{};     // as the budgets; empty where there are none
  std::vector<std::string> tiers{};  // where storages may wait
};

// `unlimited`: the run of the step without policies. `tiers`: of its machine, where storages may wait; those that it
// lacks are left out. What no bound is known for (a step without dataflow, or without work on the device) has the
// reason. REQUIRES: the trace of the run holds one rank's program; budgets are above 0.
BudgetBounds budget_bounds(const Run& unlimited, const std::vector<std::string>& tiers,
                           const std::vector<Bytes>& budgets);

}  // namespace memwall
