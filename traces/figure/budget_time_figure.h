// Step time against budget of device memory: one line per policy, the lower bound beneath them, the Pareto front.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/units.h"
#include "traces/figure/figure.h"

namespace memwall {

enum class BudgetOutcome : std::uint8_t { fits, does_not_fit, refused };

struct BudgetPoint {
  BudgetOutcome outcome = BudgetOutcome::refused;
  double seconds = 0;  // of what fits
  bool is_on_front = false;
  std::string detail;  // on hovering: "1.02 s, +2.1 %"
};

struct BudgetLine {
  std::string name;                 // "capuchin:use=swaps"
  std::vector<BudgetPoint> points;  // as BudgetTimeChart::budgets
};

struct BudgetMark {
  std::string name;  // as it was given: "40GiB", "70%"
  Bytes bytes = 0;
  std::optional<double> bound_seconds;  // nothing is faster
};

struct BudgetTimeChart {
  std::string title, subtitle;
  std::optional<double> unlimited_seconds{};  // of the step with unlimited memory
  std::vector<BudgetMark> budgets;  // at least one; distinct, the largest first
  std::vector<BudgetLine> lines;
};

// What fits is drawn by budget and time. A key beside it has a row per policy and a column per budget, and marks there
// what does not fit and what is refused. Times that differ by more than three times stand on a logarithmic axis.
Figure draw_budget_times(const BudgetTimeChart& chart);

}  // namespace memwall
