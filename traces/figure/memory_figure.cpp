#include "traces/figure/memory_figure.h"

#include <algorithm>
#include <cassert>

#include "traces/figure/palette.h"
#include "traces/figure/plot.h"
#include "traces/figure/text_metrics.h"

namespace memwall {
namespace {

using namespace plot;

constexpr double kHeight = 300;
constexpr double kColumn = 0.5;   // points; one instant is drawn per column
constexpr double kFarAway = 2.5;  // a capacity beyond this many peaks is told, not drawn

// Which instant each column shows: `index` holds from `x` on.
struct Drawn {
  double x = 0;
  std::size_t index = 0;
};

// `height(i)` decides which instant of a column is the highest. The last instant of a column
// outlasts it: where a higher one took its place, it gets the next column.
template <class Height>
std::vector<Drawn> thin(const std::vector<Time>& times, const Scale& scale, double left, double right, Height height) {
  std::vector<Drawn> drawn;
  std::size_t last = 0;
  const auto catch_up = [&] {
    if (!drawn.empty() && last != drawn.back().index)
      drawn.push_back({std::min(drawn.back().x + kColumn, right), last});
  };
  for (std::size_t i = 0; i < times.size(); ++i) {
    const double x = scale(to_seconds(times[i]));
    if (x > right) break;
    if (x <= left) {
      drawn.assign(1, {left, i});  // what happened before the window holds at its beginning
    } else {
      if (!drawn.empty() && x >= drawn.back().x + kColumn) catch_up();
      if (drawn.empty() || x >= drawn.back().x + kColumn)
        drawn.push_back({x, i});
      else if (height(i) > height(drawn.back().index))
        drawn.back().index = i;
    }
    last = i;
  }
  catch_up();
  return drawn;
}

class MemoryDrawing {
 public:
  explicit MemoryDrawing(const MemoryChart& chart) : chart_(chart) {
    totals_.assign(chart.times.size(), 0);
    for (const MemoryLayer& layer : chart.layers) {
      assert(layer.values.size() == chart.times.size());
      for (std::size_t i = 0; i < totals_.size(); ++i) totals_[i] += layer.values[i];
    }
    const auto peak = std::max_element(totals_.begin(), totals_.end());
    if (peak != totals_.end()) peak_ = static_cast<std::size_t>(peak - totals_.begin());
  }

  Figure draw() {
    figure_.width = kFigureWidth;
    figure_.title = chart_.title;
    double y = draw_title(figure_, chart_.title, chart_.subtitle);
    y = draw_legend(figure_, kMargin, y, kFigureWidth - kMargin, legend());
    area_ = {kMargin + 62, y + 18, kFigureWidth - 2 * kMargin - 62 - 8, kHeight};
    figure_.height = area_.bottom() + 42;
    const Bytes highest = highest_value();
    top_ = std::max<double>(1, static_cast<double>(highest) * 1.08);
    const Unit unit = byte_unit(top_);
    draw_time_axis(figure_, area_, chart_.begin, chart_.end);
    draw_value_axis(figure_, area_, top_, unit, "memory (" + unit.name + ")", 7);
    draw_layers();
    draw_outline();
    draw_capacity();
    draw_peak();
    return std::move(figure_);
  }

 private:
  double y(double bytes) const { return Scale{0, top_, area_.bottom(), area_.top}(bytes); }
  Scale x() const { return time_scale(area_, chart_.begin, chart_.end); }
  Bytes peak() const { return totals_.empty() ? 0 : totals_[peak_]; }
  bool capacity_is_near() const {
    return chart_.capacity > 0 && static_cast<double>(chart_.capacity) <= kFarAway * static_cast<double>(occupied());
  }
  Bytes occupied() const {
    Bytes most = peak();
    for (const Bytes bytes : chart_.outline.values) most = std::max(most, bytes);
    return most;
  }
  Bytes highest_value() const { return capacity_is_near() ? std::max(occupied(), chart_.capacity) : occupied(); }

  std::vector<LegendEntry> legend() const {
    std::vector<LegendEntry> entries;
    for (const MemoryLayer& layer : chart_.layers)
      if (std::any_of(layer.values.begin(), layer.values.end(), [](Bytes b) { return b > 0; }))
        entries.push_back({layer.name, palette::color_of(layer.name)});
    if (!chart_.outline.name.empty()) entries.push_back({chart_.outline.name, palette::kText, LegendMark::line});
    if (capacity_is_near()) entries.push_back({"capacity", palette::kLimit, LegendMark::dashes});
    return entries;
  }

  void draw_layers() {
    if (chart_.times.empty()) return;
    const std::vector<Drawn> drawn =
        thin(chart_.times, x(), area_.left, area_.right(), [this](std::size_t i) { return totals_[i]; });
    std::vector<Bytes> floor(chart_.times.size(), 0);
    for (const MemoryLayer& layer : chart_.layers) {
      if (std::all_of(layer.values.begin(), layer.values.end(), [](Bytes b) { return b == 0; })) continue;
      std::vector<Bytes> ceiling(floor);
      for (std::size_t i = 0; i < ceiling.size(); ++i) ceiling[i] += layer.values[i];
      std::vector<Point> outline = steps(drawn, ceiling);
      const std::vector<Point> below = steps(drawn, floor);
      outline.insert(outline.end(), below.rbegin(), below.rend());
      const Bytes most = *std::max_element(layer.values.begin(), layer.values.end());
      figure_.add(Polyline{std::move(outline), kNoColor, 1, palette::color_of(layer.name)},
                  layer.name + ": at most " + format_bytes(static_cast<double>(most)) + ", " +
                      format_bytes(static_cast<double>(layer.values[peak_])) + " at the peak");
      floor = std::move(ceiling);
    }
  }

  // The corners of a step function.
  std::vector<Point> steps(const std::vector<Drawn>& drawn, const std::vector<Bytes>& values) const {
    std::vector<Point> points;
    for (std::size_t k = 0; k < drawn.size(); ++k) {
      const double height = y(static_cast<double>(values[drawn[k].index]));
      if (points.empty() || points.back().y != height) {
        points.push_back({drawn[k].x, points.empty() ? height : points.back().y});
        if (points.back().y != height) points.push_back({drawn[k].x, height});
      }
    }
    if (!points.empty()) points.push_back({area_.right(), points.back().y});
    return points;
  }

  void draw_outline() {
    const MemoryOutline& outline = chart_.outline;
    if (outline.name.empty() || outline.times.empty()) return;
    const std::vector<Drawn> drawn =
        thin(outline.times, x(), area_.left, area_.right(), [&](std::size_t i) { return outline.values[i]; });
    figure_.add(Polyline{steps(drawn, outline.values), palette::kText, 1}, outline.name);
  }

  void draw_capacity() {
    if (chart_.capacity <= 0) return;
    const std::string text = "capacity " + format_bytes(static_cast<double>(chart_.capacity));
    if (!capacity_is_near()) {
      figure_.add(
          Text{{area_.right(), area_.top - 5}, text + " (far above)", kSmallSize, Anchor::end, palette::kFaintText});
      return;
    }
    const double at = y(static_cast<double>(chart_.capacity));
    figure_.add(Line{{area_.left, at}, {area_.right(), at}, palette::kLimit, 1.5, true});
    // At the side where the peak is not.
    const bool peak_is_left = !chart_.times.empty() && peak_x() < area_.left + area_.width / 2;
    figure_.add(Text{{peak_is_left ? area_.right() - 4 : area_.left + 6, at - 4},
                     text,
                     kSmallSize,
                     peak_is_left ? Anchor::end : Anchor::start,
                     palette::kLimit,
                     true});
  }

  double peak_x() const { return std::clamp(x()(to_seconds(chart_.times[peak_])), area_.left, area_.right()); }

  void draw_peak() {
    if (peak() == 0) return;
    const double at = peak_x(), height = y(static_cast<double>(peak()));
    figure_.add(Line{{at, height}, {at, area_.bottom()}, palette::kText, 0.75, true});
    figure_.add(Rectangle{at - 2.5, height - 2.5, 5, 5, palette::kText, palette::kBackground, 2.5});
    const std::string text =
        "peak " + format_bytes(static_cast<double>(peak())) + " at " + format_time(chart_.times[peak_]);
    const double width = text_width(text, kSmallSize, true);
    const bool left = at + 8 + width > area_.right();
    const double x0 = left ? at - 8 - width : at + 8;
    figure_.add(Rectangle{x0 - 3, height - 17, width + 6, 14, {255, 255, 255, 225}, kNoColor, 2});
    figure_.add(Text{{left ? at - 8 : at + 8, height - 6.5},
                     text,
                     kSmallSize,
                     left ? Anchor::end : Anchor::start,
                     palette::kText,
                     true});
  }

  const MemoryChart& chart_;
  Figure figure_;
  Area area_;
  double top_ = 1;
  std::vector<Bytes> totals_;
  std::size_t peak_ = 0;
};

}  // namespace

Figure draw_memory(const MemoryChart& chart) { return MemoryDrawing(chart).draw(); }

}  // namespace memwall
