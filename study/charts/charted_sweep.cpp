#include "study/charts/charted_sweep.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cmath>

namespace memwall {
namespace {

bool is_field_name(const std::string& text) {
  return std::ranges::all_of(text, [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '.'; });
}

}  // namespace

ChartedSweep::ChartedSweep(const SweepFigure& figure, const SweepRequest& request, const SweepResult& result)
    : figure_(figure), request_(request), result_(result) {
  for (std::size_t a = 0; a < request.space.axes.size(); ++a) axes_[request.space.axes[a].name] = drawn_axis(a);
  for (std::size_t i = 0; i < result.points.size(); ++i) {
    const auto has = [&](const auto& fixed) { return typed(result.points[i], fixed.first) == fixed.second; };
    if (std::ranges::all_of(figure.fixed, has)) points_.push_back(i);
  }
}

ChartedSweep::DrawnAxis ChartedSweep::drawn_axis(std::size_t index) const {
  Axis axis = request_.space.axes[index];
  if (request_.space.sampling != Sampling::grid) {  // other numbers of a range than those that it lists
    axis.values.clear();
    for (const SweepPoint& point : result_.points)
      if (!point.values[index].empty()) axis.values.push_back(point.values[index]);
  }
  DrawnAxis drawn{.index = index, .names = value_names(axis), .places = {}};
  if (is_numeric(axis)) drawn.numbers = number_axis_of(axis);
  for (const std::string& value : axis.values) drawn.places.emplace(value, drawn.places.size());
  return drawn;
}

const Axis& ChartedSweep::axis(const std::string& name) const {
  return *std::ranges::find(request_.space.axes, name, &Axis::name);
}

bool ChartedSweep::is_axis(const std::string& name) const {
  return std::ranges::find(result_.axes, name) != result_.axes.end();
}

const std::string& ChartedSweep::typed(const SweepPoint& point, const std::string& axis) const {
  return point.values[axes_.at(axis).index];
}

std::string ChartedSweep::shown(const std::string& axis, const std::string& typed) const {
  return typed.empty() ? "-" : axes_.at(axis).names.at(typed);
}

std::vector<std::string> ChartedSweep::shown_values(const std::string& axis) const {
  const DrawnAxis& drawn = axes_.at(axis);
  std::vector<std::string> names(drawn.places.size());
  for (const auto& [value, place] : drawn.places) names[place] = drawn.names.at(value);
  return names;
}

std::optional<std::size_t> ChartedSweep::place(const SweepPoint& point, const std::string& axis) const {
  const auto& places = axes_.at(axis).places;
  const auto found = places.find(typed(point, axis));
  return found == places.end() ? std::nullopt : std::optional(found->second);
}

std::string ChartedSweep::name_of(const SweepPoint& point, const std::vector<std::string>& axes) const {
  std::string name;
  for (const std::string& one : axes) {
    const std::string& value = typed(point, one);
    if (value.empty()) continue;
    if (!name.empty()) name += ", ";
    if (is_numeric_axis(one)) name += one + " ";
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
  const std::string objective = wanted_of(request_.objective);
  if (is_axis(name))
    found = axes_.at(name).numbers.value_or(NumberAxis{.name = name});
  else if (name != kObjectiveName)
    found = field_axis(name);
  else if (is_field_name(objective))
    found = is_axis(objective) ? number_axis(objective, false) : field_axis(objective);
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
