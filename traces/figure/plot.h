// The furniture that all figures share: title, axes, grid, legend, stacked bars.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/units.h"
#include "traces/figure/axis.h"
#include "traces/figure/figure.h"

namespace memwall::plot {

inline constexpr double kFigureWidth = 960;
inline constexpr double kMargin = 16;
inline constexpr double kTitleSize = 15, kLabelSize = 11, kSmallSize = 10;

// The rectangle within the axes.
struct Area {
  double left = 0, top = 0, width = 0, height = 0;
  double right() const { return left + width; }
  double bottom() const { return top + height; }
};

// Title and subtitle at the top, each in as many lines as it needs; returns the y below them.
double draw_title(Figure& figure, const std::string& title, const std::string& subtitle);

enum class LegendMark : std::uint8_t { box, line, dashes };
struct LegendEntry {
  std::string name;
  Color color;
  LegendMark mark = LegendMark::box;
};
// From `left` on, wrapped at `right`; returns the y below.
double draw_legend(Figure& figure, double left, double top, double right, const std::vector<LegendEntry>& entries);

// Vertical grid lines with times below the area, and their unit. `lower`: how far below, where something stands
// between.
void draw_time_axis(Figure& figure, const Area& area, Time begin, Time end, double lower = 0);

// Horizontal grid lines with numbers left of the area, `label` along the axis.
void draw_value_axis(Figure& figure, const Area& area, double high, const ScaledUnit& unit, const std::string& label,
                     int most);

// The place of an instant within an area.
Scale time_scale(const Area& area, Time begin, Time end);

// One part of a stacked bar; its colour is that of its name.
struct Part {
  std::string name;
  double value = 0;        // >= 0
  std::string value_text;  // "12.3 ms"
};
// From left to right; writes a part's share inside where it fits.
void draw_stacked_bar(Figure& figure, const Area& area, const std::vector<Part>& parts, double full);

// Entries for the parts that occur in any of the bars, in the order of first appearance.
std::vector<LegendEntry> legend_of(const std::vector<std::vector<Part>>& bars);

}  // namespace memwall::plot
