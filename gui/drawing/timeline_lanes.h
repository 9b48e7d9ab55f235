// Which lanes of a run a timeline shows, and which of their spans have names. Internal to gui/drawing.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gui/model/time_range.h"
#include "traces/figure/plot.h"
#include "traces/figure/timeline_figure.h"

namespace memwall::gui {

inline constexpr std::uint32_t kNotShown = 0xffffffff;
inline constexpr std::string_view kMoveLabel = "move by the pager";

// Is it the lane of that title? A lane of a crowded engine that continues another has its title and a number:
// "copy engine to host (2)".
bool is_titled(const std::string& lane, const std::string& title);

// The lanes of those titles, in their order, into `shown`; without titles all. Returns for each lane of `all` its place
// in `shown`, or kNotShown. Throws UsageError where a title is that of no lane.
std::vector<std::uint32_t> choose_lanes(const std::vector<TimelineLane>& all, const std::vector<std::string>& titles,
                                        std::vector<TimelineLane>& shown);

// Nobody sees the name of a span that is narrower than a point can tell; of millions, names are most of the bytes.
inline bool has_name(const TimeRange& window, Time begin, Time end) {
  constexpr double kNarrowest = 2 * plot::kFigureWidth;
  return to_seconds(end - begin) * kNarrowest >= to_seconds(window.length());
}

// The number of a kind; a new one is added.
std::uint16_t kind_of(Timeline& timeline, std::string_view name);

}  // namespace memwall::gui
