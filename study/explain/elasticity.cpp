#include "study/explain/elasticity.h"

#include <algorithm>
#include <cmath>

namespace memwall {
namespace {

constexpr double kNoChange = 5e-5;

std::optional<double> slope(const ValueOutcome& a, const ValueOutcome& b) {
  if (!(a.outcome > 0) || !(b.outcome > 0) || !(a.value > 0) || !(b.value > 0) || a.value == b.value)
    return std::nullopt;
  return std::log(b.outcome / a.outcome) / std::log(b.value / a.value);
}

bool is_nothing(const std::optional<double>& slope) { return !slope || std::abs(*slope) < kNoChange; }

VariedSide side_of(double value, const PointRecord& record) {
  VariedSide side{.value = value};
  side.figures = figures_of(record);
  side.refusal = record.error;
  return side;
}

Elasticity elasticity_of(const Sensitivity& s, const PointFigures& here, double PointFigures::*outcome) {
  const auto at = [&](const VariedSide& side) {
    return side.figures ? std::optional(ValueOutcome{side.value, (*side.figures).*outcome}) : std::nullopt;
  };
  return elasticity(at(s.lower), {s.number.value, here.*outcome}, at(s.upper));
}

}  // namespace

bool Elasticity::is_zero() const { return is_nothing(below) && is_nothing(above) && is_nothing(central); }

Elasticity elasticity(std::optional<ValueOutcome> lower, ValueOutcome here, std::optional<ValueOutcome> upper) {
  Elasticity e;
  if (lower) e.below = slope(*lower, here);
  if (upper) e.above = slope(here, *upper);
  if (e.below && e.above)
    e.central = slope(*lower, *upper);
  else
    e.central = e.below ? e.below : e.above;
  return e;
}

std::optional<PointFigures> figures_of(const PointRecord& record) {
  if (!record.error.empty()) return std::nullopt;
  const auto field = [&](const char* name) { return record.find(name).value_or(0); };
  return PointFigures{.step_time = field("step_time_s"),
                      .peak_reserved = field("peak_reserved_bytes"),
                      .peak_allocated = field("peak_allocated_bytes"),
                      .fits = record.find("fits").value_or(1) != 0};
}

bool Sensitivity::changes_anything() const {
  const bool loses_fit = (lower.figures && !lower.figures->fits) != (upper.figures && !upper.figures->fits);
  return !step_time.is_zero() || !peak_reserved.is_zero() || !peak_allocated.is_zero() || loses_fit;
}

std::vector<Sensitivity> sensitivities(ScenarioPoints& points, const Scenario& scenario, const PointFigures& here,
                                       const std::vector<VariedNumber>& numbers, double share) {
  std::vector<Scenario> scenarios;
  std::vector<Sensitivity> all;
  for (const VariedNumber& number : numbers) {
    Sensitivity s{.number = number};
    s.lower.value = number.is_whole ? number.value - 1 : number.value * (1 - share);
    s.upper.value = number.is_whole ? number.value + 1 : number.value * (1 + share);
    scenarios.push_back(with_value(scenario, number, s.lower.value));
    scenarios.push_back(with_value(scenario, number, s.upper.value));
    all.push_back(std::move(s));
  }
  const std::vector<PointRecord> records = points.run(scenarios);
  for (std::size_t i = 0; i < all.size(); ++i) {
    Sensitivity& s = all[i];
    s.lower = side_of(s.lower.value, records[2 * i]);
    s.upper = side_of(s.upper.value, records[2 * i + 1]);
    s.step_time = elasticity_of(s, here, &PointFigures::step_time);
    s.peak_reserved = elasticity_of(s, here, &PointFigures::peak_reserved);
    s.peak_allocated = elasticity_of(s, here, &PointFigures::peak_allocated);
  }
  return all;
}

}  // namespace memwall
