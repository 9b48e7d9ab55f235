// A quantity over two axes of a study: a grid of cells, the value in colour and, where it fits, in figures.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "traces/figure/figure.h"
#include "traces/figure/number_axis.h"
#include "traces/figure/series_marks.h"

namespace memwall {

struct HeatCell {
  std::optional<double> value{};  // of what ran; nothing: not known, or not part of the study
  PointState state = PointState::meets;
  std::string detail{};  // on hovering
};

struct HeatMapChart {
  std::string title, subtitle;
  std::string x_name, y_name;
  std::vector<std::string> columns;  // values of x, from left to right
  std::vector<std::string> rows;     // values of y, from the top down
  NumberAxis value{};                // its name, unit and scaling, of the colours
  std::optional<bool> more_is_better{};
  std::vector<HeatCell> cells{};  // row by row
};

// From dark for the least value to light for the most, of viridis (van der Walt, Smith 2015), which is ordered by its
// lightness alone. `share` from 0 to 1.
Color heat_color(double share);

// What failed is gray with a cross, what misses the conditions hatched, and the best of what meets them framed,
// where there is room.
// REQUIRES: columns.size() * rows.size() == cells.size(), not 0; numbers as AxisLayout.
Figure draw_heat_map(const HeatMapChart& chart);

}  // namespace memwall
