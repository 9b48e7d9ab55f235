// How series of points are told apart: colours, then shapes of markers; and the key that names them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "traces/figure/figure.h"

namespace memwall {

// What became of a point of a study.
enum class PointState : std::uint8_t {
  meets,   // ran, and keeps to what was asked
  misses,  // ran, and does not
  failed   // did not run: it has no value
};

namespace plot {

inline constexpr double kMarker = 4;  // half the width

Color color_of_series(std::size_t series);

// `hollow`: of what misses a condition; `edged`: of what is on a Pareto front.
enum class MarkerStyle : std::uint8_t { plain, hollow, edged };
void draw_marker(Figure& figure, Point at, std::size_t series, double size, MarkerStyle style = MarkerStyle::plain);

// Of what failed.
void draw_cross(Figure& figure, Point at, Color color);

// What the marks mean beside the series, as far as they occur.
struct MarkWords {
  bool hollow = false, crosses = false, edged = false;
};

// Series with their markers below a heading, names in two lines at most, then the words of marks. What is too much for
// the key is counted in its last row. Returns the y below.
double draw_series_key(Figure& figure, double left, double top, double right, const std::string& heading,
                       const std::vector<std::string>& names, const MarkWords& words);
double height_of_series_key(double width, const std::vector<std::string>& names, const MarkWords& words);

}  // namespace plot
}  // namespace memwall
