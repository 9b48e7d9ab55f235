// The whole run in a strip.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "gui/drawing/canvas_drawing.h"
#include "gui/drawing/lane_window.h"
#include "sim/error.h"
#include "traces/figure/axis.h"
#include "traces/figure/text_metrics.h"

namespace memwall::gui {
namespace {

constexpr double kStrip = 10, kMostHeadroom = 3;

class OverviewDrawing {
 public:
  OverviewDrawing(const CanvasState& state, const Theme& theme, Figure& figure)
      : state_(state), theme_(theme), figure_(figure), whole_(state.whole()) {}

  void draw() {
    const double strips = kStrip * static_cast<double>(state_.runs.size());
    const double bottom = figure_.height - strips - 2;
    draw_memory(bottom);
    for (std::size_t run = 0; run < state_.runs.size(); ++run)
      draw_streams(state_.runs[run], run == 0 ? Duration{} : state_.shift,
                   figure_.height - strips + kStrip * static_cast<double>(run));
    draw_window();
    draw_peak(bottom);
  }

 private:
  double x(Time time) const {
    const double length = static_cast<double>(std::max<std::int64_t>(1, whole_.length().count()));
    return static_cast<double>((time - whole_.begin).count()) / length * figure_.width;
  }

  // The scale of the first tier's memory. A capacity far above would press the curve to the ground: it is said in words
  // only then.
  struct MemoryScale {
    double capacity = 0, high = 0;  // bytes; high 0: there is nothing to draw
    bool shows_capacity = false;
  };
  MemoryScale memory_scale() const {
    const Run& run = state_.runs.front().outline().run;
    if (run.machine.tiers.empty() || run.result.tiers.empty() || !run.trace->knowledge.allocations) return {};
    const TierResult& peak = run.result.tiers.front();
    const double most = static_cast<double>(std::max(peak.peak_allocated, peak.peak_reserved));
    const double capacity = static_cast<double>(run.machine.tiers.front().usable());
    const bool shown = capacity > 0 && capacity <= kMostHeadroom * most;
    return {capacity, std::max(shown ? capacity : 0, most) * 1.08, shown};
  }

  // Of the first tier: allocated as an area, reserved as a line above it, and what would fit.
  void draw_memory(double bottom) {
    const MemoryScale scale = memory_scale();
    if (!(scale.high > 0)) return;
    const auto y = [&](double bytes) { return bottom - (bottom - 2) * bytes / scale.high; };
    draw_curves(state_.runs.front(), bottom, y);
    if (!scale.shows_capacity) return;
    const double at = std::round(y(scale.capacity)) + 0.5;
    figure_.add(Line{{0, at}, {figure_.width, at}, theme_.limit, 1, true});
  }

  // Where it is highest, and how high; over everything else.
  void draw_peak(double bottom) {
    const MemoryScale scale = memory_scale();
    const Run& run = state_.runs.front().outline().run;
    if (!run.trace->knowledge.allocations && !run.machine.tiers.empty())
      say(run.machine.tiers.front().name + ": not recorded");
    if (!(scale.high > 0)) return;
    const TierResult& peak = run.result.tiers.front();
    const double most = static_cast<double>(peak.peak_allocated);
    const double px = x(peak.peak_time), py = bottom - (bottom - 2) * most / scale.high;
    figure_.add(Rectangle{px - 2.5, py - 2.5, 5, 5, theme_.cursor});
    const std::string text = fmt::format("{}: peak {} of {}{}", run.machine.tiers.front().name, format_bytes(most),
                                         format_bytes(scale.capacity),
                                         scale.capacity > 0 && !scale.shows_capacity ? " (beyond this scale)" : "");
    say(text);
  }

  void say(const std::string& text) {
    const std::string fitting = fit_text(text, figure_.width - 12, kSmallText);
    Color behind = theme_.background;
    behind.opacity = 200;
    figure_.add(Rectangle{2, 1, text_width(fitting, kSmallText) + 6, 13, behind});
    figure_.add(Text{{5, 11}, fitting, kSmallText, Anchor::start, theme_.text});
  }

  template <class Height>
  void draw_curves(const OpenRun& run, double bottom, const Height& y) {
    const auto points = run.spans->level_of_detail().memory(0, run.whole(), 512);
    if (points->empty()) return;
    Polyline area, line;
    // Of all kinds of storage together: the colour of none.
    area.fill = mixed(theme_.background, theme_.axis, 0.5);
    line.stroke = theme_.axis;
    area.points.push_back({x(points->front().time), bottom});
    for (std::size_t i = 0; i < points->size(); ++i) {
      const MemoryHigh& point = (*points)[i];
      const double x0 = x(point.time), x1 = x(i + 1 < points->size() ? (*points)[i + 1].time : run.whole().end);
      for (const double at : {x0, x1}) {
        area.points.push_back({at, y(static_cast<double>(point.allocated))});
        line.points.push_back({at, y(static_cast<double>(point.reserved))});
      }
    }
    area.points.push_back({area.points.back().x, bottom});
    figure_.add(std::move(area));
    figure_.add(std::move(line));
  }

  // The mean of all streams, in the colour of what most of them do.
  void draw_streams(const OpenRun& run, Duration shift, double top) {
    const std::vector<RunLane>& lanes = run.outline().lanes;
    const auto used = [](const RunLane& lane) { return lane.kind == RunLaneKind::stream && lane.spans > 0; };
    const auto streams = static_cast<double>(std::count_if(lanes.begin(), lanes.end(), used));
    PixelColumns columns(0, figure_.width, kSpanCategories + 1);
    const double pixel = static_cast<double>(whole_.length().count()) / figure_.width;
    for (std::uint32_t i = 0; i < lanes.size(); ++i) {
      if (!used(lanes[i])) continue;
      for_each_cell(run, i, level_for(lanes[i], pixel), run.whole(), [&](const LaneCell& cell, Time begin, Time end) {
        const double share = static_cast<double>(cell.busy.count()) / static_cast<double>((end - begin).count());
        columns.add(x(begin + shift), x(end + shift), static_cast<std::uint8_t>(cell.category), share / streams);
      });
    }
    columns.draw(figure_, top, kStrip - 1, category_colors(theme_).data(), theme_.background);
  }

  void draw_window() {
    const TimeRange visible = state_.viewport.visible();
    const double from = std::clamp(x(visible.begin), 0.0, figure_.width);
    const double to = std::clamp(std::max(x(visible.end), x(visible.begin) + 2), 0.0, figure_.width);
    Color dim_overlay = theme_.background;
    dim_overlay.opacity = 150;
    if (from > 0) figure_.add(Rectangle{0, 0, from, figure_.height, dim_overlay});
    if (to < figure_.width) figure_.add(Rectangle{to, 0, figure_.width - to, figure_.height, dim_overlay});
    figure_.add(Rectangle{from, 0.5, to - from, figure_.height - 1, kNoColor, theme_.selection});
  }

  const CanvasState& state_;
  const Theme& theme_;
  Figure& figure_;
  TimeRange whole_;
};

}  // namespace

Figure draw_overview(const CanvasState& state, const Theme& theme, double width, double height) {
  Figure figure{width, height, "", {}};
  figure.add(Rectangle{0, 0, width, height, theme.background});
  if (state.runs.empty()) return figure;
  try {
    OverviewDrawing(state, theme, figure).draw();
  } catch (const InputError& error) {
    figure.add(
        Text{{4, height - 4}, fit_text(error.what(), width - 8, kSmallText), kSmallText, Anchor::start, theme.limit});
  }
  return figure;
}

}  // namespace memwall::gui
