#include "traces/figure/memory_figure.h"

#include <algorithm>
#include <cassert>

#include "traces/figure/memory_marks.h"
#include "traces/figure/palette.h"
#include "traces/figure/plot.h"

namespace memwall {
namespace {

using namespace plot;

constexpr double kMemoryHeight = 300;

class MemoryDrawing {
 public:
  explicit MemoryDrawing(const MemoryChart& chart) : chart_(chart) {
    totals_.assign(chart.times.size(), 0);
    for (const MemoryLayer& layer : chart.layers) {
      assert(layer.values.size() == chart.times.size());
      for (std::size_t i = 0; i < totals_.size(); ++i) totals_[i] += layer.values[i];
    }
    const auto highest = std::max_element(totals_.begin(), totals_.end());
    if (highest == totals_.end()) return;
    highest_ = static_cast<std::size_t>(highest - totals_.begin());
    peak_ = chart.peak ? *chart.peak : MemoryPeak{chart.times[highest_], *highest, ""};
  }

  Figure draw() {
    figure_.width = kFigureWidth;
    figure_.title = chart_.title;
    double y = draw_title(figure_, chart_.title, chart_.subtitle);
    y = draw_legend(figure_, kMargin, y, kFigureWidth - kMargin, legend());
    area_ = {kMargin + 62, y + 18, kFigureWidth - 2 * kMargin - 62 - 8, kMemoryHeight};
    const double phases = chart_.phases.empty() ? 0 : kPhaseStrip;
    const double strip = phases + height_of_activity(chart_.activity);
    figure_.height = area_.bottom() + strip + kBelowInstants;
    const Bytes highest = highest_value();
    top_ = std::max<double>(1, static_cast<double>(highest) * 1.08);
    const ScaledUnit unit = byte_unit(top_);
    draw_instant_axis(figure_, area_, chart_.unit, chart_.begin, chart_.end, strip);
    draw_value_axis(figure_, area_, top_, unit, fmt::format("memory ({})", unit.name), 7);
    draw_phase_strip(figure_, area_, chart_.unit, chart_.phases, chart_.begin, chart_.end);
    draw_activity(figure_, area_, area_.bottom() + phases, chart_.activity, chart_.begin, chart_.end);
    draw_layers();
    for (std::size_t i = chart_.outlines.size(); i-- > 0;) draw_outline(chart_.outlines[i], i == 0);
    draw_instant_marks(figure_, area_, chart_.marks, chart_.begin, chart_.end);
    draw_capacity_and_peak();
    return std::move(figure_);
  }

 private:
  double y(double bytes) const { return Scale{0, top_, area_.bottom(), area_.top}(bytes); }
  Scale x() const { return time_scale(area_, chart_.begin, chart_.end); }
  bool capacity_is_near() const { return is_near(chart_.capacity, occupied()); }
  Bytes occupied() const {
    Bytes most = totals_.empty() ? 0 : totals_[highest_];
    for (const MemoryOutline& outline : chart_.outlines)
      for (const Bytes bytes : outline.values) most = std::max(most, bytes);
    return most;
  }
  Bytes highest_value() const { return capacity_is_near() ? std::max(occupied(), chart_.capacity) : occupied(); }

  bool has_activity(ActivityState state) const {
    return std::any_of(chart_.activity.begin(), chart_.activity.end(), [&](const ActivityRow& row) {
      return std::any_of(row.spans.begin(), row.spans.end(),
                         [&](const ActivitySpan& span) { return span.state == state; });
    });
  }

  std::vector<LegendEntry> legend() const {
    std::vector<LegendEntry> entries;
    for (const MemoryLayer& layer : chart_.layers)
      if (std::any_of(layer.values.begin(), layer.values.end(), [](Bytes b) { return b > 0; }))
        entries.push_back({layer.name, palette::color_of(layer.name)});
    for (const MemoryOutline& outline : chart_.outlines)
      entries.push_back({outline.name, outline_color(&outline == &chart_.outlines.front()), LegendMark::line});
    if (capacity_is_near()) entries.push_back({"capacity", palette::kLimit, LegendMark::dashes});
    if (has_activity(ActivityState::waits)) entries.push_back({"arrived, not used yet", palette::kLightGray});
    if (has_activity(ActivityState::late)) entries.push_back({"its use waited for it", palette::kLimit});
    return entries;
  }

  void draw_layers() {
    if (chart_.times.empty()) return;
    const std::vector<DrawnInstant> drawn =
        thin_instants(chart_.times, x(), area_.left, area_.right(), [this](std::size_t i) { return totals_[i]; });
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
                  layer.name + ": at most " + format_bytes(most) + ", " + format_bytes(layer.values[highest_]) +
                      " at the peak");
      floor = std::move(ceiling);
    }
  }

  // The corners of a step function.
  std::vector<Point> steps(const std::vector<DrawnInstant>& drawn, const std::vector<Bytes>& values) const {
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

  static Color outline_color(bool first) { return first ? palette::kText : palette::kVermillion; }

  void draw_outline(const MemoryOutline& outline, bool first) {
    if (outline.times.empty()) return;
    const std::vector<DrawnInstant> drawn =
        thin_instants(outline.times, x(), area_.left, area_.right(), [&](std::size_t i) { return outline.values[i]; });
    figure_.add(Polyline{steps(drawn, outline.values), outline_color(first), 1}, outline.name);
  }

  double peak_x() const { return std::clamp(x()(to_seconds(peak_.at)), area_.left, area_.right()); }

  void draw_capacity_and_peak() {
    // The name of the line stands at the side where the peak is not.
    const bool peak_is_left = !chart_.times.empty() && peak_x() < area_.left + area_.width / 2;
    draw_capacity(figure_, area_, top_, chart_.capacity, occupied(), peak_is_left);
    if (peak_.bytes == 0) return;
    const Point at{peak_x(), y(static_cast<double>(peak_.bytes))};
    const std::string text = "peak " + format_bytes(peak_.bytes) + (peak_.name.empty() ? "" : " " + peak_.name) +
                             " at " + format_instant(chart_.unit, peak_.at);
    if (chart_.unit == InstantUnit::events || chart_.peak)
      draw_peak(figure_, area_, at, text, [this](double from, double to) {
        double highest = area_.bottom();
        for (const MemoryOutline& outline : chart_.outlines)
          highest =
              std::min(highest, y(static_cast<double>(most_between(outline.times, outline.values, x(), from, to))));
        return highest;
      });
    else
      draw_peak(figure_, area_, at, text);
  }

  const MemoryChart& chart_;
  Figure figure_;
  Area area_;
  double top_ = 1;
  std::vector<Bytes> totals_;
  std::size_t highest_ = 0;  // the instant of the highest stack
  MemoryPeak peak_;
};

}  // namespace

Figure draw_memory(const MemoryChart& chart) { return MemoryDrawing(chart).draw(); }

}  // namespace memwall
