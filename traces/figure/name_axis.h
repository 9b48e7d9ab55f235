// An axis of names, below an area: beside each other where they fit, else slanted.
#pragma once

#include <string>
#include <vector>

#include "traces/figure/number_axis.h"

namespace memwall::plot {

// `names` stand at their places, ascending; shortened where they would leave the page, and left out where there are
// more than lines of text fit. `label` stands below them. Returns what they take below the area. A line from the axis
// up marks each place where `has_grid`.
double draw_name_axis(Figure& figure, const Area& area, const std::vector<AxisTick>& names, const std::string& label,
                      bool has_grid);

}  // namespace memwall::plot
