// A quantity over an axis of a study: one line per series, with a marker per point; what failed is marked.
#pragma once

#include <string>
#include <vector>

#include "traces/figure/figure.h"
#include "traces/figure/number_axis.h"
#include "traces/figure/series_marks.h"

namespace memwall {

struct LinePoint {
  double x = 0;  // of LineChart::x; an index into `categories` where there are some
  double y = 0;  // of what did not fail
  PointState state = PointState::meets;
  std::string detail{};  // on hovering: "batch 8: 12.3 ms"
};

struct LineSeries {
  std::string name;               // "checkpoint, h100-sxm-80gb"
  std::vector<LinePoint> points;  // in any order
};

struct LineChart {
  std::string title, subtitle;
  NumberAxis x{}, y{};
  std::vector<std::string> categories{};  // of an axis whose values are no numbers; else empty
  std::string series_name{};              // heading of the key: "policy, machine"
  std::vector<LineSeries> series{};
};

// Points of a series are joined in the order of x, but not across one that failed. Failed points stand as crosses in
// rows of their own at the bottom, one per series that has some. An x axis that is left to choose is logarithmic where
// its values stand at equal factors (1, 2, 4, 8). REQUIRES: numbers as AxisLayout; indices within `categories`.
Figure draw_lines(const LineChart& chart);

}  // namespace memwall
