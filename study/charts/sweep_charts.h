// Pictures of a sweep: its points as the charts of traces/figure, with the names of axes and policies.
#pragma once

#include <optional>

#include "study/charts/charted_sweep.h"
#include "study/charts/sweep_figure.h"
#include "traces/figure/budget_time_figure.h"
#include "traces/figure/heat_map_figure.h"
#include "traces/figure/line_figure.h"
#include "traces/figure/scatter_figure.h"
#include "traces/figure/tornado_figure.h"

namespace memwall {

LineChart line_chart(const SweepFigure& figure, const ChartedSweep& sweep);
ScatterChart pareto_chart(const SweepFigure& figure, const ChartedSweep& sweep);
HeatMapChart heat_map_chart(const SweepFigure& figure, const ChartedSweep& sweep);

// The base is the best point; without one, the first that ran. A bar goes over the points that differ from it in one
// axis alone, in those that are zipped with it, and in those whose condition it decides.
TornadoChart tornado_chart(const SweepFigure& figure, const ChartedSweep& sweep);

// Nothing where it does not suit that chart: budgets are no sizes, the field is no time, lines lack budgets, or points
// miss another condition than to fit.
std::optional<BudgetTimeChart> budget_chart(const SweepFigure& figure, const ChartedSweep& sweep);

// REQUIRES: `figure` was parsed for `request`, and `result` is that of it with fields_of(figure).
Figure draw_sweep(const SweepFigure& figure, const SweepRequest& request, const SweepResult& result);

}  // namespace memwall
