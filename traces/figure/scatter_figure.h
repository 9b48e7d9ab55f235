// Points of a study by two quantities, with the Pareto front: those of which none is better in both.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "traces/figure/figure.h"
#include "traces/figure/number_axis.h"
#include "traces/figure/series_marks.h"

namespace memwall {

struct ScatterPoint {
  std::string name{};  // "checkpoint, h100-sxm-80gb": in the list of the front, and on hovering
  double x = 0, y = 0;
  bool meets = true;       // the conditions; else it is hollow, and never on the front
  std::size_t series = 0;  // index into ScatterChart::series
};

struct ScatterChart {
  std::string title, subtitle;
  NumberAxis x{}, y{};
  bool more_x_is_better = false, more_y_is_better = false;
  std::string series_name{};          // heading of the key: "policy"
  std::vector<std::string> series{};  // names
  std::vector<ScatterPoint> points{};
};

// Indices of the points on the front, by ascending x: those that meet the conditions and have none beside them that
// does, is no worse in both and better in one. Points of one place are all on it.
std::vector<std::size_t> pareto_front(const std::vector<ScatterPoint>& points, bool more_x_is_better,
                                      bool more_y_is_better);

// The front is a staircase: behind it nothing was found. Its points are edged, and numbered as in the list beside the
// drawing, of at most kMostListed. Points that look alike are drawn once. REQUIRES: numbers as AxisLayout.
inline constexpr std::size_t kMostListed = 14;
Figure draw_scatter(const ScatterChart& chart);

}  // namespace memwall
