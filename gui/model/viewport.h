// The visible range, which all views share: which instants the pixels of a canvas show.
//
// Pure arithmetic. x is in logical pixels from the left edge of the drawing area (right of the lane
// titles). Zooming and panning stop at the ends of the run and at one nanosecond across.
#pragma once

#include <vector>

#include "gui/model/time_range.h"

namespace memwall::gui {

class Viewport {
 public:
  // Shows all of `whole`. REQUIRES: width > 0.
  explicit Viewport(TimeRange whole, double width = 1000);

  TimeRange whole() const { return whole_; }
  TimeRange visible() const { return visible_; }
  double width() const { return width_; }
  // Changes nothing of what is visible.
  void resize(double width) { width_ = width; }
  // Of a run that is moved against another. What is visible and remembered stays as far as it lies within.
  void set_whole(TimeRange whole);

  double x(Time time) const;  // beyond the edges too
  Time time(double x) const;  // within the run
  double picoseconds_per_pixel() const;

  // factor 2 shows half as much; the instant under `at` stays there. REQUIRES: factor > 0.
  void zoom(double factor, double at);
  void pan(double pixels);  // positive: later times come into view
  // As near to `range` as the limits allow, and remembered for undo().
  void show(TimeRange range);
  void show_all() { show(whole_); }
  // Brings `time` into view without zooming; nothing happens where it is.
  void reveal(Time time);
  // Remembers what is visible: called by the view when a gesture of zooming or panning begins.
  void remember();
  // Back to what was remembered last; false if there is nothing.
  bool undo();

 private:
  void set(double begin, double length);  // picoseconds, clamped
  TimeRange whole_, visible_;
  double width_;
  std::vector<TimeRange> history_;  // at most 100
};

}  // namespace memwall::gui
