#include "study/charts/charted_sweep.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cmath>

namespace memwall {
namespace {

// The objective without the word that says what is best.
std::string objective_text(const std::string& text) {
  return text.starts_with("max ") || text.starts_with("min ") ? text.substr(4) : text;
}

bool is_field_name(const std::string& text) {
  return std::ranges::all_of(text, [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '.'; });
}

}  // namespace

ChartedSweep::ChartedSweep(const SweepFigure& figure, const SweepRequest& request, const SweepResult& result)
    : figure_(figure), request_(request), result_(result) {
  for (const Axis& one : request.space.axes) {
    Axis drawn = one;
    if (request.space.sampling != Sampling::grid) {  // other numbers of a range than those that it lists
      drawn.values.clear();
      for (const SweepPoint& point : result.points)
        if (const std::string& value = typed(point, one.name); !value.empty()) drawn.values.push_back(value);
    }
    names_[one.name] = value_names(drawn);
  }
  for (std::size_t i = 0; i < result.points.size(); ++i) {
    const auto has = [&](const auto& fixed) { return typed(result.points[i], fixed.first) == fixed.second; };
    if (std::ranges::all_of(figure.fixed, has)) points_.push_back(i);
  }
}

const Axis& ChartedSweep::axis(const std::string& name) const {
  return *std::ranges::find(request_.space.axes, name, &Axis::name);
}

bool ChartedSweep::is_axis(const std::string& name) const {
  return std::ranges::find(result_.axes, name) != result_.axes.end();
}

const std::string& ChartedSweep::typed(const SweepPoint& point, const std::string& axis) const {
  return point.values[static_cast<std::size_t>(std::ranges::find(result_.axes, axis) - result_.axes.begin())];
}

std::string ChartedSweep::shown(const std::string& axis, const std::string& typed) const {
  if (typed.empty()) return "-";
  const auto& names = names_.at(axis);
  const auto found = names.find(typed);
  return found == names.end() ? typed : found->second;
}

std::string ChartedSweep::name_of(const SweepPoint& point, const std::vector<std::string>& axes) const {
  std::string name;
  for (const std::string& one : axes) {
    const std::string& value = typed(point, one);
    if (value.empty()) continue;
    if (!name.empty()) name += ", ";
    if (is_numeric(axis(one))) name += one + " ";
    name += shown(one, value);
  }
  return name;
}

std::vector<std::string> ChartedSweep::varied_axes() const {
  std::vector<std::string> found;
  for (const Axis& one : request_.space.axes) {
    const bool is_fixed = std::ranges::any_of(figure_.fixed, [&](const auto& f) { return f.first == one.name; });
    if (!is_fixed && (one.values.size() > 1 || one.range)) found.push_back(one.name);
  }
  return found;
}

std::optional<double> ChartedSweep::number(const SweepPoint& point, const std::string& name) const {
  std::optional<double> value;
  if (is_axis(name)) {
    if (const auto number = typed_number(typed(point, name))) value = number->value;
  } else if (point.ran()) {
    value = name == kObjectiveName ? point.objective : point.record.find(full_field_name(name));
  }
  constexpr double kMost = 1e150;  // what an axis can hold
  return value && std::abs(*value) < kMost ? value : std::nullopt;
}

NumberAxis ChartedSweep::number_axis(const std::string& name, bool is_logarithmic) const {
  NumberAxis found;
  const std::string objective = objective_text(request_.objective);
  if (is_axis(name))
    found = number_axis_of(axis(name));
  else if (name != kObjectiveName)
    found = field_axis(name);
  else if (is_field_name(objective))
    found = is_axis(objective) ? number_axis_of(axis(objective)) : field_axis(objective);
  else
    found = {.name = objective, .unit = axis_unit_of(result_.objective_unit)};
  if (is_logarithmic) found.scaling = AxisScaling::logarithmic;
  return found;
}

bool ChartedSweep::is_more_better(const std::string& name) const {
  return name == kObjectiveName ? !result_.minimizes : more_is_better(name);
}

std::string ChartedSweep::scenario_words() const {
  const Scenario& base = request_.base;
  std::vector<std::string> steps;
  if (!is_axis("step"))
    for (const auto& [typed, name] : value_names({.name = "step", .values = base.step})) steps.push_back(name);
  constexpr std::size_t kMostSteps = 3;
  std::string text =
      steps.size() > kMostSteps ? fmt::format("{} steps", steps.size()) : fmt::format("{}", fmt::join(steps, ", "));
  const std::string machine = is_axis("machine") || base.machine.empty()
                                  ? ""
                                  : value_names({.name = "machine", .values = {base.machine}}).begin()->second;
  if (!machine.empty()) text += (text.empty() ? "on " : " on ") + machine;
  std::vector<std::string> with = base.policies;
  with.insert(with.end(), base.settings.begin(), base.settings.end());
  if (!with.empty()) text += fmt::format("{}with {}", text.empty() ? "" : " ", fmt::join(with, ", "));
  return text;
}

std::string ChartedSweep::subtitle() const {
  std::vector<std::string> parts;
  if (std::string scenario = scenario_words(); !scenario.empty()) parts.push_back(std::move(scenario));
  for (const auto& [name, value] : figure_.fixed) parts.push_back(name + " " + shown(name, value));
  if (!request_.conditions.empty()) parts.push_back(fmt::format("where {}", fmt::join(request_.conditions, " and ")));
  std::size_t failed = 0, meet = 0;
  for (const std::size_t i : points_) {
    failed += result_.points[i].ran() ? 0 : 1;
    meet += result_.points[i].meets ? 1 : 0;
  }
  std::string count = fmt::format("{} point{}", points_.size(), points_.size() == 1 ? "" : "s");
  if (failed > 0) count += fmt::format(", {} failed", failed);
  if (!request_.conditions.empty())
    count += fmt::format(", {} meet{} the condition{}", meet, meet == 1 ? "s" : "",
                         request_.conditions.size() == 1 ? "" : "s");
  parts.push_back(std::move(count));
  return fmt::format("{}", fmt::join(parts, "; "));
}

}  // namespace memwall
