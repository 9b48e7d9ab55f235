// A timeline: what ran when, in one lane per stream, copy engine or host thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/units.h"
#include "traces/figure/figure.h"

namespace memwall {

struct TimelineLane {
  std::string name;   // "stream 7"
  bool thin = false;  // half the height: host threads, where only the pattern matters
};

struct TimelineSpan {
  std::uint32_t lane = 0;  // index into Timeline::lanes
  Time begin{}, end{};
  std::uint16_t kind = 0;  // index into Timeline::kinds
  std::string label;       // inside where it fits, and on hovering
};

// An instant that matters for all lanes: the boundary of a step.
struct TimelineMark {
  Time time{};
  std::string label;
};

struct Timeline {
  std::string title, subtitle;
  Time begin{}, end{};              // the window; spans beyond are cut
  std::vector<TimelineLane> lanes;  // from the top
  std::vector<std::string> kinds;   // "forward", "copy": name in the legend, and colour
  std::vector<TimelineSpan> spans;  // in any order; those of one lane may overlap
  std::vector<TimelineMark> marks;
};

// Spans too short to be seen are merged per half point of width, in the colour that lasts longest
// there: a million spans make a picture of some ten thousand shapes. REQUIRES: begin <= end,
// indices in range, begin <= end of each span.
Figure draw_timeline(const Timeline& timeline);

}  // namespace memwall
