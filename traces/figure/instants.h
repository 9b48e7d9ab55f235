// Instants of a drawing: the horizontal axis by time or by the number of an event, with steps and phases; and which
// instants are drawn where there are more of them than the paper has room for.
//
// A Time counts picoseconds on the axis of time; on the axis of events, Time(n) is event n.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "traces/figure/plot.h"

namespace memwall {

enum class InstantUnit : std::uint8_t { time, events };

// A line at an instant: the boundary of a step.
struct InstantMark {
  Time at{};
  std::string label;
};

// A phase between two instants.
struct InstantSpan {
  Time begin{}, end{};
  std::string name;
};

namespace plot {

inline constexpr double kColumn = 0.5;        // points; one instant is drawn per column
inline constexpr double kPhaseStrip = 15;     // height of the strip of phases
inline constexpr double kBelowInstants = 42;  // what the axis needs below its area, without the strip

// "event 1 234", or the time: "12.3 ms".
std::string format_instant(InstantUnit unit, Time at);
// Grid lines with their numbers below the area. `lower`: how far below, where a strip of phases stands between.
void draw_instant_axis(Figure& figure, const Area& area, InstantUnit unit, Time begin, Time end, double lower = 0);
// Lines over the whole height; labels above the area, where each finds room before the next.
void draw_instant_marks(Figure& figure, const Area& area, const std::vector<InstantMark>& marks, Time begin, Time end);
// A strip below the area, with names in it where they fit. Spans may not overlap.
void draw_phase_strip(Figure& figure, const Area& area, InstantUnit unit, const std::vector<InstantSpan>& phases,
                      Time begin, Time end);

// The highest value of a step function between two places: values[i] holds from times[i] on. 0 where it has not begun.
Bytes most_between(const std::vector<Time>& times, const std::vector<Bytes>& values, const Scale& scale, double from,
                   double to);

// Which instant a column shows: `index` holds from `x` on.
struct DrawnInstant {
  double x = 0;
  std::size_t index = 0;
};

// `height(i)` decides which instant of a column is the highest, so that no peak is lost. The last instant of a column
// outlasts it: where a higher one took its place, it gets the next column. `column`: its width in points.
// REQUIRES: times ascend.
template <class Height>
std::vector<DrawnInstant> thin_instants(const std::vector<Time>& times, const Scale& scale, double left, double right,
                                        Height height, double column = kColumn) {
  std::vector<DrawnInstant> drawn;
  std::size_t last = 0;
  const auto catch_up = [&] {
    if (!drawn.empty() && last != drawn.back().index) drawn.push_back({std::min(drawn.back().x + column, right), last});
  };
  for (std::size_t i = 0; i < times.size(); ++i) {
    const double x = scale(to_seconds(times[i]));
    if (x > right) break;
    if (x <= left) {
      drawn.assign(1, {left, i});  // what happened before the window holds at its beginning
    } else {
      if (!drawn.empty() && x >= drawn.back().x + column) catch_up();
      if (drawn.empty() || x >= drawn.back().x + column)
        drawn.push_back({x, i});
      else if (height(i) > height(drawn.back().index))
        drawn.back().index = i;
    }
    last = i;
  }
  catch_up();
  return drawn;
}

}  // namespace plot
}  // namespace memwall
