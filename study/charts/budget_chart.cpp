#include <algorithm>

#include "sim/words.h"
#include "study/charts/chart_words.h"
#include "study/charts/sweep_charts.h"

namespace memwall {
namespace {

class BudgetChartMaker {
 public:
  BudgetChartMaker(const SweepFigure& figure, const ChartedSweep& sweep)
      : figure_(figure), sweep_(sweep), time_(sweep.number_axis(figure.y, figure.log_y)) {}

  std::optional<BudgetTimeChart> make() {
    if (figure_.log_x || figure_.log_y || !is_time() || !read_budgets()) return std::nullopt;
    for (const std::size_t i : sweep_.points())
      if (!read_point(sweep_.result().points[i])) return std::nullopt;
    mark_front();
    return chart();
  }

 private:
  bool is_time() const { return time_.unit.measure == Measure::seconds && time_.unit.suffix.empty(); }

  // Sizes, distinct.
  bool read_budgets() {
    const AxisUnit unit = sweep_.number_axis(figure_.x, false).unit;
    const bool is_size = unit.measure == Measure::bytes || unit.measure == Measure::binary_bytes;
    if (!sweep_.is_numeric_axis(figure_.x) || !is_size || !unit.suffix.empty()) return false;
    const std::vector<std::string>& values = sweep_.axis(figure_.x).values;
    for (const std::string& value : values) sizes_.emplace(static_cast<Bytes>(typed_number(value)->value), value);
    for (const auto& [bytes, name] : sizes_) budgets_.push_back({name, bytes, {}});
    return sizes_.size() == values.size();
  }

  // A point that misses another condition than to fit has no mark on that chart.
  bool read_point(const SweepPoint& point) {
    const std::optional<double> bytes = sweep_.number(point, figure_.x), seconds = sweep_.number(point, figure_.y);
    const bool fits = point.record.find("fits").value_or(1) != 0;
    if (!bytes || (point.ran() && (!seconds || (fits && !point.meets)))) return false;
    const std::size_t line = series_.of(sweep_.name_of(point, figure_.series));
    const auto found = sizes_.find(static_cast<Bytes>(*bytes));
    if (found == sizes_.end()) return false;
    const auto budget = static_cast<std::size_t>(std::distance(sizes_.begin(), found));
    if (line == points_.size()) points_.emplace_back(budgets_.size());
    if (!point.ran()) {
      points_[line][budget] = {BudgetOutcome::refused, 0, false, point.record.error};
      return true;
    }
    points_[line][budget] = {fits ? BudgetOutcome::fits : BudgetOutcome::does_not_fit, *seconds, false,
                             number_text(time_.unit, *seconds)};
    if (!fits) return true;
    fitting_.push_back({"", *bytes, *seconds});
    places_.emplace_back(line, budget);
    return true;
  }

  void mark_front() {
    for (const std::size_t i : pareto_front(fitting_, false, false))
      points_[places_[i].first][places_[i].second]->is_on_front = true;
  }

  std::optional<BudgetTimeChart> chart() const {
    BudgetTimeChart made{.title = capitalized(time_.name) + " by " + enumerated(with_series(figure_.x, figure_)),
                         .subtitle = sweep_.subtitle(),
                         .unlimited_seconds = {},
                         .budgets = budgets_,
                         .lines = {}};
    for (std::size_t line = 0; line < points_.size(); ++line) {
      const std::string& name = series_.names()[line];
      made.lines.push_back({name.empty() ? "the step" : name, {}});
      for (const std::optional<BudgetPoint>& point : points_[line]) {
        if (!point) return std::nullopt;
        made.lines.back().points.push_back(*point);
      }
    }
    return made.lines.empty() ? std::nullopt : std::optional(made);
  }

  const SweepFigure& figure_;
  const ChartedSweep& sweep_;
  const NumberAxis time_;
  std::map<Bytes, std::string, std::greater<>> sizes_;  // the largest first, as typed
  std::vector<BudgetMark> budgets_;
  NamesInOrder series_;
  std::vector<std::vector<std::optional<BudgetPoint>>> points_;  // by line and budget
  std::vector<ScatterPoint> fitting_;
  std::vector<std::pair<std::size_t, std::size_t>> places_;  // line and budget of those
};

}  // namespace

std::optional<BudgetTimeChart> budget_chart(const SweepFigure& figure, const ChartedSweep& sweep) {
  return BudgetChartMaker(figure, sweep).make();
}

}  // namespace memwall
