// A timeline: what ran when, in one lane per stream, copy engine or host thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/units.h"
#include "traces/figure/figure.h"
#include "traces/figure/plot.h"

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

// The same picture from spans that come one by one and need not stay: a run of a hundred million has no list of them.
//
// Spans too short to be seen are merged per half point of width, in the colour that lasts longest there: a million
// spans make a picture of some ten thousand shapes, and the drawing keeps no more than these.
class TimelineDrawing {
 public:
  // `timeline`: without its spans; it must outlive this. Its kinds may grow until draw().
  // REQUIRES: begin <= end.
  explicit TimelineDrawing(const Timeline& timeline);
  // REQUIRES: begin <= end, the lane's index in range, begins not before the lane's span added last.
  void add(TimelineSpan span);
  // REQUIRES: the kinds of all spans are there.
  Figure draw();

 private:
  // What is merged, and how long each kind of it lasts.
  struct Column {
    long at = 0;  // counted in half points from the left
    std::map<std::uint16_t, double> points;
    std::size_t spans = 0;
  };
  struct Lane {
    double top = 0, height = 0;
    std::vector<Column> columns;      // from left to right
    std::vector<TimelineSpan> spans;  // that are seen; ascending in begin
  };

  void place_columns();
  void place_lanes(double top);
  std::vector<plot::LegendEntry> legend() const;
  void draw_lanes();
  void draw_columns(const Lane& lane);
  void draw_span(const TimelineSpan& span, const Lane& lane);
  void draw_marks();
  std::pair<double, double> extent(const TimelineSpan& span) const;

  const Timeline& timeline_;
  Figure figure_;
  plot::Area area_;
  std::vector<Lane> lanes_;
  std::vector<bool> occurs_;  // by kind
};

// A timeline whose spans are all there, in any order. REQUIRES: begin <= end, indices in range, begin <= end of each
// span.
Figure draw_timeline(const Timeline& timeline);

}  // namespace memwall
