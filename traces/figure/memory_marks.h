// What figures of memory share: the mark of the peak, the line of the capacity.
#pragma once

#include <functional>
#include <string>

#include "traces/figure/plot.h"

namespace memwall::plot {

// Is the capacity near enough to what is occupied that both can stand in one area? Else it is told, not drawn.
bool is_near(Bytes capacity, Bytes occupied);

// `top`: the bytes at the upper end of the area. `label_right`: at which end its name stands.
void draw_capacity(Figure& figure, const Area& area, double top, Bytes capacity, Bytes occupied, bool label_right);

// A point with a line down to the axis and a text beside it.
void draw_peak(Figure& figure, const Area& area, Point at, const std::string& text);

// The same with the text above what is drawn: `ceiling(from, to)` is the highest place (the least y) of any line
// between these x.
void draw_peak(Figure& figure, const Area& area, Point at, const std::string& text,
               const std::function<double(double from, double to)>& ceiling);

}  // namespace memwall::plot
