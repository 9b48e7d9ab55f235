#include <fmt/format.h>

#include <algorithm>

#include "study/charts/sweep_charts.h"

namespace memwall {
namespace {

// The points that differ from a base in one axis.
class OneAxisMoves {
 public:
  OneAxisMoves(const ChartedSweep& sweep, const std::vector<std::vector<std::string>>& zips, const SweepPoint& base)
      : sweep_(sweep), zips_(zips), base_(base) {}

  bool moves(const std::string& moved, const SweepPoint& point) const {
    for (const std::string& name : sweep_.result().axes) {
      const std::string &value = sweep_.typed(point, name), &before = sweep_.typed(base_, name);
      if (value == before || name == moved || are_zipped(zips_, name, moved)) continue;
      const auto& condition = sweep_.axis(name).condition;
      const bool follows = condition && condition->axis == moved && (value.empty() || before.empty());
      if (!follows) return false;
    }
    return true;
  }

 private:
  const ChartedSweep& sweep_;
  const std::vector<std::vector<std::string>>& zips_;
  const SweepPoint& base_;
};

// The best of those that are drawn; without one the first that has the value.
std::optional<std::size_t> base_of(const ChartedSweep& sweep, const std::string& field) {
  const auto& best = sweep.result().best;
  const std::vector<std::size_t>& points = sweep.points();
  if (best && std::ranges::find(points, *best) != points.end() && sweep.number(sweep.result().points[*best], field))
    return best;
  for (const std::size_t i : points)
    if (sweep.number(sweep.result().points[i], field)) return i;
  return std::nullopt;
}

std::string note_of(std::size_t failed, std::size_t missed, std::size_t of) {
  if (failed > 0) return fmt::format("{} of {} failed", failed, of);
  return missed > 0 ? fmt::format("{} of {} miss a condition", missed, of) : "";
}

}  // namespace

TornadoChart tornado_chart(const SweepFigure& figure, const ChartedSweep& sweep) {
  const NumberAxis outcome = sweep.number_axis(figure.value, figure.log_value);
  TornadoChart chart{.title = "What moves " + outcome.name,
                     .subtitle = sweep.subtitle(),
                     .outcome = outcome,
                     .base_name = "",
                     .bars = {}};
  const std::optional<std::size_t> base = base_of(sweep, figure.value);
  if (!base) return chart;
  const SweepPoint& from = sweep.result().points[*base];
  chart.base = *sweep.number(from, figure.value);
  chart.base_name = base == sweep.result().best ? "the best point" : fmt::format("point {}", *base + 1);
  const OneAxisMoves moves(sweep, sweep.zips(), from);
  for (const std::string& name : sweep.varied_axes()) {
    const auto end = [&](const SweepPoint& point) {
      return TornadoEnd{sweep.shown(name, sweep.typed(point, name)), *sweep.number(point, figure.value)};
    };
    TornadoBar bar{name, sweep.shown(name, sweep.typed(from, name)), end(from), end(from), ""};
    std::size_t failed = 0, missed = 0, of = 0;
    for (const std::size_t i : sweep.points()) {
      const SweepPoint& point = sweep.result().points[i];
      if (!moves.moves(name, point)) continue;
      ++of;
      failed += point.ran() ? 0 : 1;
      missed += point.ran() && !point.meets ? 1 : 0;
      if (!sweep.number(point, figure.value)) continue;
      const TornadoEnd here = end(point);
      if (here.outcome < bar.low.outcome) bar.low = here;
      if (here.outcome > bar.high.outcome) bar.high = here;
    }
    bar.note = note_of(failed, missed, of);
    chart.bars.push_back(std::move(bar));
  }
  return chart;
}

}  // namespace memwall
