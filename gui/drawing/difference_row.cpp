// How far the second run lags behind the first, over the first run's time: above the zero line it is behind, below it
// is ahead. The scale is that of what is visible, zero included. Where the second run is drawn shifted, a dashed line
// shows the lag at which ops stand below their counterparts.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "gui/drawing/row_drawing.h"
#include "traces/figure/axis.h"
#include "traces/figure/plot.h"
#include "traces/figure/text_metrics.h"

namespace memwall::gui {
namespace {

constexpr double kCurvePadding = 3;
constexpr double kTickHeight = 15;    // pixels of height per tick
constexpr double kWordsHeight = 44;   // of a row that has room for "behind" and "ahead"
constexpr std::uint8_t kFill = 0x70;  // opacity

// The curve is of the first run's time, whichever run the row is listed under.
double x_of(const RowPlace& place, Time time) { return place.left + place.state.viewport.x(time); }
Time base_time(const RowPlace& place, double x) {
  const double from_left = (x - place.left) * place.state.viewport.picoseconds_per_pixel();
  return place.state.viewport.visible().begin + Duration(std::llround(from_left));
}

// What is visible, and one point beyond either edge, so that the curve runs through.
std::vector<LagPoint> curve_of(const RowPlace& place, const RunComparison& comparison) {
  const TimeRange visible = place.state.viewport.visible();
  const auto most = static_cast<std::size_t>(4 * std::max(place.width, 1.0));
  std::vector<LagPoint> points = comparison.lag_within(visible, most);
  if (const auto before = comparison.last_before(visible.begin)) points.insert(points.begin(), *before);
  if (const auto after = comparison.first_behind(visible.end)) points.push_back(*after);
  return points;
}

struct ValueRange {
  double low = 0, high = 0;  // seconds
};
// With a margin; never empty.
ValueRange values_of(const std::vector<LagPoint>& points) {
  ValueRange range;
  for (const LagPoint& point : points) {
    range.low = std::min(range.low, to_seconds(point.lag));
    range.high = std::max(range.high, to_seconds(point.lag));
  }
  const double margin = std::max(0.08 * (range.high - range.low), 1e-12);
  return {range.low - margin, range.high + margin};
}

std::string signed_time(Duration lag) {
  if (lag.count() == 0) return "0";
  return (lag.count() > 0 ? "+" : "\xe2\x88\x92") + format_time(lag.count() > 0 ? lag : -lag);
}

void draw_ticks(const RowPlace& place, const Scale& y, Figure& figure) {
  const ScaledUnit unit = time_unit(std::max(y.high, -y.low));
  const int most = std::clamp(static_cast<int>(place.height / kTickHeight), 2, 5);
  const double low = y.low / unit.factor, high = y.high / unit.factor;
  const double step = nice_step(high - low, most - 1), size = std::min(place.theme.font_size - 2, 9.0);
  for (const double tick : nice_ticks(low, high, most)) {
    const double at = y(tick * unit.factor);
    if (tick != 0) figure.add(Line{{place.left, at}, {place.left + place.width, at}, place.theme.grid, 0.75});
    // The line through the text would be hard to read; above the upper edge there is no room.
    const double base = std::clamp(at + size * 0.36, place.top + size, place.top + place.height - 2);
    const std::string sign = tick > 0 ? "+" : "";
    figure.add(Text{{place.left + 4, base},
                    tick == 0 ? "0" : sign + format_tick(tick, step) + " " + unit.name,
                    size,
                    Anchor::start,
                    place.theme.faint_text});
  }
}

// The part of the curve on one side of zero, as an area. `sign`: +1 above, -1 below.
void draw_side(const std::vector<Point>& curve, double zero, int sign, Color color, Figure& figure) {
  const auto beyond = [&](double y) { return sign > 0 ? std::min(y, zero) : std::max(y, zero); };
  Polyline area;
  area.fill = {color.red, color.green, color.blue, kFill};
  area.points.push_back({curve.front().x, zero});
  bool any = false;
  for (std::size_t i = 0; i < curve.size(); ++i) {
    const Point& point = curve[i];
    if (i > 0 && (curve[i - 1].y - zero) * (point.y - zero) < 0) {
      const double share = (zero - curve[i - 1].y) / (point.y - curve[i - 1].y);
      area.points.push_back({curve[i - 1].x + share * (point.x - curve[i - 1].x), zero});
    }
    area.points.push_back({point.x, beyond(point.y)});
    any = any || beyond(point.y) != zero;
  }
  area.points.push_back({curve.back().x, zero});
  if (any) figure.add(std::move(area));
}

// Straight between two points, so that what lies left and right of the row is cut off exactly.
void cut(std::vector<Point>& curve, double left, double right) {
  const auto at = [](const Point& a, const Point& b, double x) {
    return b.x > a.x ? Point{x, a.y + (x - a.x) / (b.x - a.x) * (b.y - a.y)} : Point{x, b.y};
  };
  if (curve.size() < 2) return;
  if (curve.front().x < left) curve.front() = at(curve[0], curve[1], left);
  const std::size_t last = curve.size() - 1;
  if (curve.back().x > right) curve.back() = at(curve[last - 1], curve[last], right);
}

void draw_words(const RowPlace& place, const ValueRange& values, double zero, Figure& figure) {
  const double size = std::min(place.theme.font_size - 1, 10.0), right = place.left + place.width - 6;
  const auto word = [&](const char* text, double base) {
    figure.add(Text{{right, base}, text, size, Anchor::end, place.theme.faint_text});
  };
  // The margin alone is less than a line of text.
  if (values.high > 0 && zero - place.top > size + 8) word("second run behind", place.top + size + 2);
  if (values.low < 0 && place.top + place.height - zero > size + 8)
    word("second run ahead", place.top + place.height - 4);
}

std::string difference_waiting_text(const RowPlace& place) {
  const CanvasState& state = place.state;
  if (state.runs.size() < 2) return "difference: open a second run to compare";
  std::uint64_t ops = 0;
  bool small = true;
  for (const OpenRun& run : state.runs) {
    ops += run.outline().ops;
    small = small && (run.analysis != nullptr || run.outline().ops <= kSmallRun);
  }
  if (small) return "difference: being worked out";
  return fmt::format("difference: press Q to work it out (about {} of memory)",
                     format_bytes(static_cast<double>(ops) * kAnalysisBytesPerOp));
}

void draw_message(const RowPlace& place, const std::string& text, Figure& figure) {
  const double size = place.theme.font_size;
  figure.add(Text{{place.left + 8, place.top + place.height / 2 + size * 0.36},
                  fit_text(text, place.width - 16, size),
                  size,
                  Anchor::start,
                  place.theme.faint_text});
}

constexpr const char* kNothingAligned = "difference: no work of one run stands in the other";

// "1.2 ms behind".
std::string behind(Duration lag) {
  if (lag.count() == 0) return "level with the first";
  return format_time(lag.count() > 0 ? lag : -lag) + (lag.count() > 0 ? " behind" : " ahead");
}

}  // namespace

void draw_difference_row(const RowPlace& place, CanvasFrame& frame) {
  Figure& figure = frame.figure;
  const RunComparison* comparison = place.state.comparison.get();
  if (comparison == nullptr) return draw_message(place, difference_waiting_text(place), figure);
  const std::vector<LagPoint> points = curve_of(place, *comparison);
  if (points.empty()) return draw_message(place, kNothingAligned, figure);
  const ValueRange values = values_of(points);
  const Scale y{values.low, values.high, place.top + place.height - kCurvePadding, place.top + kCurvePadding};
  std::vector<Point> curve;
  for (const LagPoint& point : points) curve.push_back({x_of(place, point.time), y(to_seconds(point.lag))});
  cut(curve, place.left, place.left + place.width);
  const double zero = y(0), right = place.left + place.width;
  draw_ticks(place, y, figure);
  // Above and below zero say which; colours mean other things here.
  draw_side(curve, zero, +1, place.theme.axis, figure);
  draw_side(curve, zero, -1, place.theme.axis, figure);
  figure.add(Line{{place.left, zero}, {right, zero}, place.theme.axis, 1});
  const double aligned = -to_seconds(place.state.shift);
  if (aligned != 0 && aligned > values.low && aligned < values.high)
    figure.add(Line{{place.left, y(aligned)}, {right, y(aligned)}, place.theme.cursor, 1, true});
  figure.add(Polyline{std::move(curve), place.theme.text, 1});
  if (place.height >= kWordsHeight) draw_words(place, values, zero, figure);
}

void hit_difference_row(const RowPlace& place, double x, double, Hit& hit) {
  const RunComparison* comparison = place.state.comparison.get();
  if (comparison == nullptr) {
    hit.text = difference_waiting_text(place);
    return;
  }
  const Time time = base_time(place, x);
  const std::optional<LagPoint> point = comparison->last_until(time);
  if (!point) {
    hit.text = comparison->lag.empty() ? kNothingAligned : "difference: no work of both runs has ended yet";
    return;
  }
  const TimeRange visible = place.state.viewport.visible();
  const Duration at_begin = comparison->last_until(visible.begin).value_or(LagPoint{}).lag;
  const Duration at_end = comparison->last_until(visible.end).value_or(LagPoint{}).lag;
  hit.text = fmt::format("at {} the second run is {}, {} in the visible range", format_time(time), behind(point->lag),
                         signed_time(at_end - at_begin));
  if (place.state.shift.count() != 0)
    hit.text += fmt::format("\nas drawn, shifted by {}: {}", signed_time(place.state.shift),
                            behind(point->lag + place.state.shift));
  if (std::abs(x_of(place, point->time) - x) <= 3) hit.op = OpRef{0, point->base, false};
}

}  // namespace memwall::gui
