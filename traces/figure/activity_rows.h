// Rows of work below a chart of time: when what was copied, fetched or run again.
#pragma once

#include <string>
#include <vector>

#include "sim/units.h"
#include "traces/figure/figure.h"
#include "traces/figure/plot.h"

namespace memwall {

// What a piece of work is: one covers those before it where both are drawn in one place.
enum class ActivityState : std::uint8_t { waits, works, late };

struct ActivitySpan {
  Time begin{}, end{};
  ActivityState state = ActivityState::works;
  Bytes bytes = 0;   // 0 = is not told
  std::string text;  // shown on hovering, where it stands alone
};

struct ActivityRow {
  std::string name;  // left of the row: "fetched"
  std::string verb;  // of several in one place: "3 fetched, 1.2 GB"
  Color color;       // of what works
  std::vector<ActivitySpan> spans;
};

namespace plot {

inline constexpr double kActivityRow = 11;   // height of a row
inline constexpr double kAboveActivity = 6;  // what stands free above the first, beside the lowest number of the axis

// What the rows need, with what stands free above them; 0 without rows.
inline double height_of_activity(const std::vector<ActivityRow>& rows) {
  return rows.empty() ? 0 : kAboveActivity + kActivityRow * static_cast<double>(rows.size());
}

// The rows, one below the other, `top` being where the height above begins. Spans that leave no room between each other
// are one.
void draw_activity(Figure& figure, const Area& area, double top, const std::vector<ActivityRow>& rows, Time begin,
                   Time end);

}  // namespace plot
}  // namespace memwall
