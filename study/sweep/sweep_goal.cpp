#include "study/sweep/sweep_goal.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "sim/error.h"
#include "study/sweep/outcome_fields.h"

namespace memwall {
namespace {

// Names that people write, and the field that is meant.
constexpr std::array<std::pair<std::string_view, std::string_view>, 8> kShortNames = {
    {{"step_time", "step_time_s"},
     {"peak", "peak_reserved_bytes"},
     {"peak_reserved", "peak_reserved_bytes"},
     {"peak_allocated", "peak_allocated_bytes"},
     {"missing", "missing_bytes"},
     {"throughput", "samples_per_s"},
     {"price", "price_dollars"},
     {"energy", "energy_joules"}}};

// More of them is better.
constexpr std::array<std::string_view, 3> kMoreIsBetter = {"samples_per_s", "tokens_per_s", "mfu"};

const Axis* find_axis(const std::vector<Axis>& axes, const std::string& name) {
  const auto axis = std::ranges::find(axes, name, &Axis::name);
  return axis == axes.end() ? nullptr : &*axis;
}

}  // namespace

SweepGoal::SweepGoal(const std::vector<Axis>& axes, const std::vector<std::string>& conditions,
                     const std::string& objective, const std::vector<std::string>& fields)
    : axes_(axes) {
  for (const std::string& text : conditions) {
    conditions_.push_back(read(text));
    if (!conditions_.back().is_condition() && !is_truth_field(text))
      throw UsageError(
          fmt::format("Condition \"{}\" is a number; expected one that is true or false, as fits, fits_device or "
                      "\"step_time < 1s\".",
                      text));
  }
  for (const std::string& name : fields) want(name);
  if (objective.empty()) return;
  const std::string text = wanted_of(objective);
  objective_.emplace(read(text));
  if (objective_->is_condition())
    throw UsageError(
        fmt::format("Objective \"{}\" is true or false; expected a number, as step_time; conditions stand "
                    "in --where.",
                    objective));
  minimizes_ = objective.starts_with("min ") || (!objective.starts_with("max ") && !more_is_better(text));
}

// An axis has the unit of its values, of which all have one.
FieldUnit SweepGoal::unit_of(const std::string& name) const {
  const Axis* const axis = find_axis(axes_, name);
  if (axis == nullptr) return unit_of_field(full_field_name(name));
  std::optional<FieldUnit> unit;
  for (const std::string& value : axis->values) {
    const std::optional<TypedNumber> number = typed_number(value);
    if (!number || (unit && !(*unit == number->unit)))
      throw UsageError(
          fmt::format("Axis {} stands in an expression, and its value {} is {}; expected numbers of one unit.", name,
                      value, number ? "of another unit than those before" : "no number"));
    unit = number->unit;
  }
  return *unit;
}

// A name that is mistyped has no unit of its own: it is what the complaint should name.
Expression SweepGoal::read(const std::string& text) {
  std::string mistyped;
  const auto unit = [&](const std::string& name) {
    if (find_axis(axes_, name) == nullptr && full_field_name(name) == name && !is_quick_field(name) && mistyped.empty())
      mistyped = name;
    return unit_of(name);
  };
  try {
    Expression expression(text, unit);
    for (const std::string& name : expression.names()) want(name);
    return expression;
  } catch (const UsageError& error) {
    throw UsageError(error.what() + (mistyped.empty() ? "" : nearest_field(mistyped, axes_, {})));
  }
}

void SweepGoal::want(const std::string& name) {
  if (find_axis(axes_, name) != nullptr) return;
  wanted_.push_back(full_field_name(name));
  needs_all_ |= !is_quick_field(wanted_.back());
}

std::optional<double> SweepGoal::value_of(const SweepPoint& point, const std::string& name) const {
  const Axis* const axis = find_axis(axes_, name);
  if (axis == nullptr) return point.record.find(full_field_name(name));
  const auto number = typed_number(point.values[static_cast<std::size_t>(axis - axes_.data())]);
  return number ? std::optional(number->value) : std::nullopt;
}

void SweepGoal::judge(SweepPoint& point) const {
  if (!point.ran()) return;
  const FieldLookup lookup = [&](const std::string& name) { return value_of(point, name); };
  point.broken.clear();
  for (std::size_t i = 0; i < conditions_.size(); ++i)
    if (!conditions_[i].holds(lookup)) point.broken.push_back(i);
  point.meets = point.broken.empty();
  if (objective_) point.objective = objective_->value(lookup);
}

bool SweepGoal::is_better(const SweepPoint& one, const SweepPoint& other) const {
  if (!one.meets || !one.objective) return false;
  return minimizes_ ? *one.objective < *other.objective : *one.objective > *other.objective;
}

std::optional<std::string> SweepGoal::unknown_field(const std::vector<const PointRecord*>& known) const {
  for (const std::string& name : wanted_)
    if (std::ranges::none_of(known, [&](const PointRecord* r) { return r->find(name).has_value(); })) return name;
  return std::nullopt;
}

std::string full_field_name(const std::string& name) {
  const auto found = std::ranges::find(kShortNames, name, &std::pair<std::string_view, std::string_view>::first);
  return found == kShortNames.end() ? name : std::string(found->second);
}

bool is_truth_field(std::string_view name) { return name == "fits" || name == "fits_device"; }

bool more_is_better(const std::string& field) {
  return std::ranges::find(kMoreIsBetter, full_field_name(field)) != kMoreIsBetter.end();
}

std::string wanted_of(const std::string& objective) {
  return objective.starts_with("max ") || objective.starts_with("min ") ? objective.substr(4) : objective;
}

bool is_known_name(const std::string& name) {
  return is_quick_field(name) ||
         std::ranges::any_of(kShortNames, [&](const auto& known) { return known.second == name; });
}

bool seems_mistyped(const std::string& name, const std::vector<Axis>& axes) {
  return !is_known_name(name) && name.find('.') == std::string::npos && !nearest_field(name, axes, {}).empty();
}

std::string nearest_field(const std::string& name, const std::vector<Axis>& axes,
                          const std::vector<const PointRecord*>& known) {
  std::vector<std::string> names;
  for (const Axis& axis : axes) names.push_back(axis.name);
  for (const auto& [shorter, full] : kShortNames) names.insert(names.end(), {std::string(shorter), std::string(full)});
  for (const std::string_view field : quick_fields_of_run()) names.emplace_back(field);
  for (const PointRecord* record : known)
    for (const auto& [field, value] : record->fields) names.push_back(field);
  return did_you_mean(name, names);
}

}  // namespace memwall
