#include "study/charts/sweep_charts.h"
#include "sim/words.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "study/charts/chart_words.h"

namespace memwall {
namespace {

PointState state_of(const SweepPoint& point) {
  return !point.ran() ? PointState::failed : point.meets ? PointState::meets : PointState::misses;
}

// What a point is and what it gave, for hovering.
std::string detail_of(const ChartedSweep& sweep, const SweepPoint& point, const std::vector<std::string>& axes,
                      const std::string& field, const AxisUnit& unit) {
  const std::string name = sweep.name_of(point, axes);
  const std::string separator = name.empty() ? "" : ": ";
  if (!point.ran()) return name + separator + point.record.error;
  const std::optional<double> value = sweep.number(point, field);
  return name + separator + (value ? number_text(unit, *value) : "not known");
}

}  // namespace

LineChart line_chart(const SweepFigure& figure, const ChartedSweep& sweep) {
  const bool numeric = sweep.is_numeric_axis(figure.x);
  LineChart chart{.title = "",
                  .subtitle = sweep.subtitle(),
                  .x = {.name = figure.x},
                  .y = sweep.number_axis(figure.y, figure.log_y)};
  if (numeric)
    chart.x = sweep.number_axis(figure.x, figure.log_x);
  else
    chart.categories = sweep.shown_values(figure.x);
  chart.title = capitalized(chart.y.name) + " by " + enumerated(with_series(figure.x, figure));
  chart.series_name = fmt::format("{}", fmt::join(figure.series, ", "));
  NamesInOrder series;
  for (const std::size_t i : sweep.points()) {
    const SweepPoint& point = sweep.result().points[i];
    const std::optional<double> y = sweep.number(point, figure.y);
    if (point.ran() && !y) continue;
    LinePoint drawn{.y = y.value_or(0),
                    .state = state_of(point),
                    .detail = detail_of(sweep, point, {figure.x}, figure.y, chart.y.unit)};
    if (numeric) {
      const std::optional<double> x = sweep.number(point, figure.x);
      if (!x) continue;  // it does not apply there
      drawn.x = *x;
    } else {
      const std::optional<std::size_t> x = sweep.place(point, figure.x);
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
  NamesInOrder series;
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
  HeatMapChart chart{.title = "",
                     .subtitle = sweep.subtitle(),
                     .x_name = figure.x,
                     .y_name = figure.y,
                     .columns = sweep.shown_values(figure.x),
                     .rows = sweep.shown_values(figure.y),
                     .value = sweep.number_axis(figure.value, figure.log_value)};
  chart.title = capitalized(chart.value.name) + " by " + enumerated({figure.x, figure.y});
  chart.more_is_better = sweep.is_more_better(figure.value);
  // Numbers grow upwards, as on other charts.
  const bool is_upwards = sweep.is_numeric_axis(figure.y);
  if (is_upwards) std::ranges::reverse(chart.rows);
  chart.cells.resize(chart.columns.size() * chart.rows.size());
  for (const std::size_t i : sweep.points()) {
    const SweepPoint& point = sweep.result().points[i];
    const auto column = sweep.place(point, figure.x), row = sweep.place(point, figure.y);
    if (!column || !row) continue;  // one of both does not apply there
    const std::size_t from_top = is_upwards ? chart.rows.size() - 1 - *row : *row;
    chart.cells[from_top * chart.columns.size() + *column] = {
        sweep.number(point, figure.value), state_of(point),
        detail_of(sweep, point, {figure.x, figure.y}, figure.value, chart.value.unit)};
  }
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
