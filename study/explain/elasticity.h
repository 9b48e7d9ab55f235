// Elasticities: by how many percent an outcome changes for one percent of a number, found by simulating again.
//
// A number v is set to v (1 - h) and v (1 + h), a whole number to v - 1 and v + 1, and with y the outcome
//
//   below = ln(y(v) / y(lower)) / ln(v / lower)      above = ln(y(upper) / y(v)) / ln(upper / v)
//   central = ln(y(upper) / y(lower)) / ln(upper / lower)
//
// In logarithms all three are exact, whatever h, where y is a power of v (a copy alone on its link: -1), and central is
// right to second order in h elsewhere. `below` and `above` enclose it (central is their mean, weighted by the
// distances); they differ where y has a kink at v, because something else begins to bind.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "study/sweep/scenario_points.h"
#include "study/explain/varied_number.h"

namespace memwall {

struct Elasticity {
  std::optional<double> below, above;  // nothing where that side was refused, or an outcome is 0
  std::optional<double> central;       // over both sides, or over the one that there is

  // Less than 0.00005 counts as nothing: it would be printed as 0.
  bool is_zero() const;
};

// One of the values and its outcome; an outcome of 0 or less is none.
struct ValueOutcome {
  double value = 0, outcome = 0;
};
Elasticity elasticity(std::optional<ValueOutcome> lower, ValueOutcome here, std::optional<ValueOutcome> upper);

// What of a run elasticities are of.
struct PointFigures {
  double step_time = 0;  // seconds, mean over the steps; memory taken as unlimited if it does not fit
  double peak_reserved = 0, peak_allocated = 0;  // bytes of GPU memory ("hbm"); 0 = not recorded
  bool fits = true;                              // and keeps to the budgets of its policies
};
// Nothing where the point failed.
std::optional<PointFigures> figures_of(const PointRecord& record);

// A number's value on one side, and what comes of it.
struct VariedSide {
  double value = 0;
  std::optional<PointFigures> figures{};
  std::string refusal{};  // a sentence, where there are none
};

struct Sensitivity {
  VariedNumber number{};
  VariedSide lower{}, upper{};
  Elasticity step_time{}, peak_reserved{}, peak_allocated{};

  bool changes_anything() const;
};

inline constexpr double kUsualShare = 0.05;

// Of each number, in their order. `share`: h, above 0 and at most a half. `here`: of the scenario itself.
std::vector<Sensitivity> sensitivities(ScenarioPoints& points, const Scenario& scenario, const PointFigures& here,
                                       const std::vector<VariedNumber>& numbers, double share);

}  // namespace memwall
