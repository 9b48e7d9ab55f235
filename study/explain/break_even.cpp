#include "study/explain/break_even.h"

#include <fmt/format.h>

#include <cmath>

#include "sim/error.h"
#include "study/explain/elasticity.h"
#include "study/explain/policy_regret.h"
#include "study/explain/varied_number.h"

namespace memwall {
namespace {

// The value where the difference is 0, between two at which it has different signs.
double zero_between(double a, double at_a, double b, double at_b, bool is_logarithmic) {
  const double share = at_a / (at_a - at_b);
  return is_logarithmic ? a * std::pow(b / a, share) : a + share * (b - a);
}

std::optional<double> number_of(const std::string& value) {
  double number = 0;
  std::string unit;
  return split_quantity(value, number, unit) ? std::optional(number) : std::nullopt;
}

// Of two neighbours.
class Neighbours {
 public:
  Neighbours(const CurvePoint& before, const CurvePoint& after, bool is_logarithmic)
      : before_(before), after_(after), is_logarithmic_(is_logarithmic) {}

  void add_to(std::vector<BreakEven>& crossings) const {
    for (std::size_t w = 0; w < kChoices.size(); ++w) add_fit(w, crossings);
    for (std::size_t w = 0; w < kChoices.size(); ++w)
      for (std::size_t other = 0; other < w; ++other) add_crossing(w, other, crossings);
  }

 private:
  void add_fit(std::size_t choice, std::vector<BreakEven>& crossings) const {
    const auto a = figures_of(before_.choices[choice]), b = figures_of(after_.choices[choice]);
    if (!a || !b || a->fits == b->fits) return;
    crossings.push_back(
        {.choice = choice, .other = choice, .fits_after = b->fits, .before = before_.value, .after = after_.value});
  }

  void add_crossing(std::size_t one, std::size_t other, std::vector<BreakEven>& crossings) const {
    const auto one_a = figures_of(before_.choices[one]), one_b = figures_of(after_.choices[one]);
    const auto other_a = figures_of(before_.choices[other]), other_b = figures_of(after_.choices[other]);
    if (!one_a || !one_b || !other_a || !other_b) return;
    const double at_a = one_a->step_time - other_a->step_time, at_b = one_b->step_time - other_b->step_time;
    if (at_a * at_b >= 0) return;
    const bool one_wins = at_b < 0;
    BreakEven crossing{.choice = one_wins ? one : other,
                       .other = one_wins ? other : one,
                       .before = before_.value,
                       .after = after_.value};
    const std::optional<double> a = number_of(before_.value), b = number_of(after_.value);
    if (a && b) crossing.at = zero_between(*a, at_a, *b, at_b, is_logarithmic_);
    crossings.push_back(std::move(crossing));
  }

  const CurvePoint& before_;
  const CurvePoint& after_;
  bool is_logarithmic_;
};

}  // namespace

std::vector<BreakEven> crossings_of(const std::vector<CurvePoint>& points, bool is_logarithmic) {
  std::vector<BreakEven> crossings;
  for (std::size_t i = 1; i < points.size(); ++i)
    Neighbours(points[i - 1], points[i], is_logarithmic).add_to(crossings);
  return crossings;
}

BreakEvenCurve break_even_curve(ScenarioPoints& points, const Scenario& scenario, const Axis& axis,
                                const SweepWatch& watch) {
  if (axis.name == "policy" || axis.condition)
    throw UsageError(
        fmt::format("--curve {}: expected an axis without condition that names no policies, as in "
                    "sequence=1024..65536:log:7 or pcie=16..64GB/s:log:5.",
                    axis.name));
  if (axis.values.size() < 2)
    throw UsageError(fmt::format("--curve {}: found one value; expected two or more.", axis.name));
  std::vector<std::string> plans;
  std::string budget;
  SweepRequest request{.base = without_plans(scenario, plans, budget),
                       .space = {},
                       .jobs = points.jobs(),
                       .accept_gaps = points.accept_gaps()};
  if (request.base.budget.empty()) request.base.budget = budget;
  request.space.axes = {axis, {.name = "policy", .values = {kChoicePolicies.begin(), kChoicePolicies.end()}}};
  const SweepResult result = sweep(points.study(), request, points.journal(), watch);
  BreakEvenCurve curve{.axis = axis, .points = {}, .crossings = {}};
  for (std::size_t i = 0; i < result.points.size(); i += kChoices.size()) {
    CurvePoint point{.value = result.points[i].values[0], .choices = {}};
    for (std::size_t w = 0; w < kChoices.size(); ++w) point.choices[w] = result.points[i + w].record;
    curve.points.push_back(std::move(point));
  }
  curve.crossings = crossings_of(curve.points, axis.range && axis.range->is_logarithmic);
  return curve;
}

}  // namespace memwall
