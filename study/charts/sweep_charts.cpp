#include "study/charts/sweep_charts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

namespace memwall {
namespace {

PointState state_of(const SweepPoint& point) {
  return !point.ran() ? PointState::failed : point.meets ? PointState::meets : PointState::misses;
}

std::string capitalized(std::string text) {
  if (!text.empty()) text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text;
}

// What a point is and what it gave, for hovering.
std::string detail_of(const ChartedSweep& sweep, const SweepPoint& point, const std::vector<std::string>& axes,
                      const std::string& field) {
  const std::string name = sweep.name_of(point, axes);
  const std::string separator = name.empty() ? "" : ": ";
  if (!point.ran()) return name + separator + point.record.error;
  const std::optional<double> value = sweep.number(point, field);
  return name + separator + (value ? number_text(sweep.number_axis(field, false).unit, *value) : "not known");
}

// Where names first stand.
class Places {
 public:
  std::size_t of(const std::string& name) {
    const auto [at, is_new] = place_of_.try_emplace(name, names_.size());
    if (is_new) names_.push_back(name);
    return at->second;
  }
  const std::vector<std::string>& names() const { return names_; }

 private:
  std::map<std::string, std::size_t> place_of_;
  std::vector<std::string> names_;
};

std::string by_words(const std::vector<std::string>& axes) {
  if (axes.empty()) return "";
  if (axes.size() == 1) return axes.front();
  return fmt::format("{} and {}", fmt::join(axes.begin(), axes.end() - 1, ", "), axes.back());
}

// A picture of one series needs no name for it.
std::vector<std::string> with_series(std::string x, const SweepFigure& figure) {
  std::vector<std::string> axes{std::move(x)};
  axes.insert(axes.end(), figure.series.begin(), figure.series.end());
  return axes;
}

std::vector<std::string> shown_values(const ChartedSweep& sweep, const std::string& axis) {
  std::vector<std::string> names;
  for (const std::string& value : sweep.axis(axis).values) names.push_back(sweep.shown(axis, value));
  return names;
}

std::optional<std::size_t> index_of(const Axis& axis, const std::string& value) {
  const auto at = std::ranges::find(axis.values, value);
  if (at == axis.values.end()) return std::nullopt;
  return static_cast<std::size_t>(at - axis.values.begin());
}

}  // namespace

LineChart line_chart(const SweepFigure& figure, const ChartedSweep& sweep) {
  const Axis& axis = sweep.axis(figure.x);
  const bool numeric = is_numeric(axis);
  LineChart chart{.title = "",
                  .subtitle = sweep.subtitle(),
                  .x = {.name = figure.x},
                  .y = sweep.number_axis(figure.y, figure.log_y)};
  if (numeric)
    chart.x = sweep.number_axis(figure.x, figure.log_x);
  else
    chart.categories = shown_values(sweep, figure.x);
  chart.title = capitalized(chart.y.name) + " by " + by_words(with_series(figure.x, figure));
  chart.series_name = fmt::format("{}", fmt::join(figure.series, ", "));
  Places series;
  for (const std::size_t i : sweep.points()) {
    const SweepPoint& point = sweep.result().points[i];
    const std::optional<double> y = sweep.number(point, figure.y);
    if (point.ran() && !y) continue;
    LinePoint drawn{
        .y = y.value_or(0), .state = state_of(point), .detail = detail_of(sweep, point, {figure.x}, figure.y)};
    if (numeric) {
      const std::optional<double> x = sweep.number(point, figure.x);
      if (!x) continue;  // it does not apply there
      drawn.x = *x;
    } else {
      const std::optional<std::size_t> x = index_of(axis, sweep.typed(point, figure.x));
      if (!x) continue;
      drawn.x = static_cast<double>(*x);
    }
    const std::size_t place = series.of(sweep.name_of(point, figure.series));
    if (place == chart.series.size()) chart.series.push_back({series.names().back(), {}});
    chart.series[place].points.push_back(std::move(drawn));
  }
  return chart;
}

ScatterChart pareto_chart(const SweepFigure& figure, const ChartedSweep& sweep) {
  ScatterChart chart{.title = "",
                     .subtitle = sweep.subtitle(),
                     .x = sweep.number_axis(figure.x, figure.log_x),
                     .y = sweep.number_axis(figure.y, figure.log_y)};
  chart.title = capitalized(chart.y.name) + " against " + chart.x.name;
  chart.more_x_is_better = figure.more_x || sweep.is_more_better(figure.x);
  chart.more_y_is_better = figure.more_y || sweep.is_more_better(figure.y);
  chart.series_name = fmt::format("{}", fmt::join(figure.series, ", "));
  const std::vector<std::string> varied = sweep.varied_axes();
  Places series;
  for (const std::size_t i : sweep.points()) {
    const SweepPoint& point = sweep.result().points[i];
    const std::optional<double> x = sweep.number(point, figure.x), y = sweep.number(point, figure.y);
    if (!point.ran() || !x || !y) continue;
    chart.points.push_back(
        {sweep.name_of(point, varied), *x, *y, point.meets, series.of(sweep.name_of(point, figure.series))});
  }
  chart.series = series.names();
  return chart;
}

HeatMapChart heat_map_chart(const SweepFigure& figure, const ChartedSweep& sweep) {
  const Axis &x = sweep.axis(figure.x), &y = sweep.axis(figure.y);
  HeatMapChart chart{.title = "",
                     .subtitle = sweep.subtitle(),
                     .x_name = figure.x,
                     .y_name = figure.y,
                     .columns = shown_values(sweep, figure.x),
                     .rows = shown_values(sweep, figure.y),
                     .value = sweep.number_axis(figure.value, figure.log_value)};
  chart.title = capitalized(chart.value.name) + " by " + by_words({figure.x, figure.y});
  chart.more_is_better = sweep.is_more_better(figure.value);
  // Numbers grow upwards, as on other charts.
  const bool is_upwards = is_numeric(y);
  if (is_upwards) std::ranges::reverse(chart.rows);
  chart.cells.resize(chart.columns.size() * chart.rows.size());
  for (const std::size_t i : sweep.points()) {
    const SweepPoint& point = sweep.result().points[i];
    const auto column = index_of(x, sweep.typed(point, figure.x)), row = index_of(y, sweep.typed(point, figure.y));
    if (!column || !row) continue;  // one of both does not apply there
    const std::size_t from_top = is_upwards ? chart.rows.size() - 1 - *row : *row;
    chart.cells[from_top * chart.columns.size() + *column] = {
        sweep.number(point, figure.value), state_of(point),
        detail_of(sweep, point, {figure.x, figure.y}, figure.value)};
  }
  return chart;
}

std::optional<BudgetTimeChart> budget_chart(const SweepFigure& figure, const ChartedSweep& sweep) {
  const Axis& axis = sweep.axis(figure.x);
  const AxisUnit unit = is_numeric(axis) ? number_axis_of(axis).unit : AxisUnit{};
  const bool is_size = (unit.measure == Measure::bytes || unit.measure == Measure::binary_bytes) && unit.suffix.empty();
  const NumberAxis time = sweep.number_axis(figure.y, figure.log_y);
  if (!is_size || time.unit.measure != Measure::seconds || !time.unit.suffix.empty() || figure.log_x || figure.log_y)
    return std::nullopt;
  BudgetTimeChart chart{.title = capitalized(time.name) + " by " + by_words(with_series(figure.x, figure)),
                        .subtitle = sweep.subtitle(),
                        .unlimited_seconds = {},
                        .budgets = {},
                        .lines = {}};
  std::map<Bytes, std::string, std::greater<>> budgets;  // the largest first
  for (const std::string& value : axis.values) budgets.emplace(static_cast<Bytes>(typed_number(value)->value), value);
  for (const auto& [bytes, name] : budgets) chart.budgets.push_back({name, bytes, {}});
  if (budgets.size() != axis.values.size()) return std::nullopt;

  Places series;
  std::vector<std::vector<std::optional<BudgetPoint>>> points;
  std::vector<ScatterPoint> fitting;
  std::vector<std::pair<std::size_t, std::size_t>> place_of_fitting;  // line, budget
  for (const std::size_t i : sweep.points()) {
    const SweepPoint& point = sweep.result().points[i];
    const std::optional<double> bytes = sweep.number(point, figure.x), seconds = sweep.number(point, figure.y);
    if (!bytes || (point.ran() && !seconds)) return std::nullopt;
    const std::size_t line = series.of(sweep.name_of(point, figure.series));
    const auto budget =
        static_cast<std::size_t>(std::distance(budgets.begin(), budgets.find(static_cast<Bytes>(*bytes))));
    if (line == points.size()) points.emplace_back(chart.budgets.size());
    const bool fits = point.meets && point.record.find("fits").value_or(1) != 0;
    points[line][budget] = {!point.ran() ? BudgetOutcome::refused
                            : fits       ? BudgetOutcome::fits
                                         : BudgetOutcome::does_not_fit,
                            seconds.value_or(0), false,
                            point.ran() ? number_text(time.unit, *seconds) : point.record.error};
    if (!fits) continue;
    fitting.push_back({"", *bytes, *seconds});
    place_of_fitting.emplace_back(line, budget);
  }
  for (const std::size_t i : pareto_front(fitting, false, false))
    points[place_of_fitting[i].first][place_of_fitting[i].second]->is_on_front = true;
  for (std::size_t line = 0; line < points.size(); ++line) {
    chart.lines.push_back({series.names()[line].empty() ? "the step" : series.names()[line], {}});
    for (const auto& point : points[line]) {
      if (!point) return std::nullopt;
      chart.lines.back().points.push_back(*point);
    }
  }
  if (chart.lines.empty()) return std::nullopt;
  return chart;
}

Figure draw_sweep(const SweepFigure& figure, const SweepRequest& request, const SweepResult& result) {
  const ChartedSweep sweep(figure, request, result);
  switch (figure.kind) {
    case SweepFigureKind::line:
      break;
    case SweepFigureKind::pareto:
      return draw_scatter(pareto_chart(figure, sweep));
    case SweepFigureKind::heatmap:
      return draw_heat_map(heat_map_chart(figure, sweep));
    case SweepFigureKind::tornado:
      return draw_tornado(tornado_chart(figure, sweep));
    case SweepFigureKind::budget:
      if (const auto chart = budget_chart(figure, sweep)) return draw_budget_times(*chart);
      break;
  }
  return draw_lines(line_chart(figure, sweep));
}

}  // namespace memwall
