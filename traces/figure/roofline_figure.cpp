#include "traces/figure/roofline_figure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>

#include "traces/figure/axis.h"
#include "traces/figure/palette.h"
#include "traces/figure/plot.h"
#include "traces/figure/text_metrics.h"

namespace memwall {
namespace {

using namespace plot;

constexpr double kKeyWidth = 300, kRooflineHeight = 446, kKeyRow = 43, kKeyLine = 12;
constexpr double kSmallestRadius = 2.5, kLargestRadius = 30;
constexpr std::size_t kNumbered = 10;
constexpr double kLeastDecades = 2;

struct Box {
  double left = 0, top = 0, right = 0, bottom = 0;
  bool meets(const Box& o) const { return left < o.right && o.left < right && top < o.bottom && o.top < bottom; }
};

// A sloped roof from its lower end to its ridge, with its name above the lower end.
struct Slope {
  Point low, high;
  double name_ends = 0;  // x
  bool meets(const Box& box) const {
    if (box.right < low.x || high.x < box.left) return false;
    const double rise = (high.y - low.y) / (high.x - low.x);
    const double at_left = low.y + (box.left - low.x) * rise, at_right = low.y + (box.right - low.x) * rise;
    const double above = box.left < name_ends ? 18 : 1;
    return at_right - above < box.bottom && box.top < at_left + 1;
  }
};

std::string format_flops(double value) {
  const double power = std::clamp(3 * std::floor(std::log10(std::max(value, 1.0)) / 3), 0.0, 18.0);
  const char* const prefixes[] = {"", "k", "M", "G", "T", "P", "E"};
  const double scaled = value / std::pow(10, power);
  return fmt::format("{:.{}f} {}FLOP/s", scaled,
                     scaled < 10    ? 2
                     : scaled < 100 ? 1
                                    : 0,
                     prefixes[static_cast<int>(power) / 3]);
}

class RooflineDrawing {
 public:
  explicit RooflineDrawing(const RooflineChart& chart) : chart_(chart) {}

  Figure draw() {
    figure_.width = kFigureWidth;
    figure_.title = chart_.title;
    double y = draw_title(figure_, chart_.title, chart_.subtitle);
    y = draw_legend(figure_, kMargin + 52, y, kFigureWidth - kMargin, legend());
    area_ = {kMargin + 52, y + 6, kFigureWidth - 2 * kMargin - 52 - kKeyWidth - 16, kRooflineHeight};
    choose_range();
    draw_axes();
    draw_roofs();
    draw_points();
    draw_key();
    figure_.height = area_.bottom() + 44;
    return std::move(figure_);
  }

 private:
  // Where a point stands on the x axis; none where it has no FLOPs, or no traffic that is known.
  static std::optional<double> place(const RooflinePoint& p) {
    if (!(p.flops_per_second > 0)) return std::nullopt;
    if (std::isfinite(p.intensity) && p.intensity > 0) return p.intensity;
    if (std::isfinite(p.near_intensity) && p.near_intensity > 0) return p.near_intensity;
    return std::nullopt;
  }

  std::vector<LegendEntry> legend() const {
    std::vector<LegendEntry> entries;
    for (const RooflinePoint& p : chart_.points)
      if (std::none_of(entries.begin(), entries.end(), [&](const LegendEntry& e) { return e.name == p.word; }))
        entries.push_back({p.word, palette::color_of(p.word), LegendMark::box});
    if (chart_.memory.size() > 1)
      entries.push_back({fmt::format("point: at its {} intensity; the line ends at that of {}",
                                     chart_.memory.back().name, chart_.memory.front().name),
                         palette::kAxis, LegendMark::line});
    return entries;
  }

  // Round numbers around all points, the ridges and the highest roof.
  void choose_range() {
    double left = 1, right = 10, low = 1e12, high = 1;
    for (const FlatRoof& roof : chart_.compute) {
      high = std::max(high, roof.flops_per_second);
      low = std::min(low, roof.flops_per_second);
      for (const SlopedRoof& m : chart_.memory) right = std::max(right, roof.flops_per_second / m.bytes_per_second);
    }
    for (const RooflinePoint& p : chart_.points) {
      const std::optional<double> x = place(p);
      if (!x) continue;
      left = std::min(left, p.near_intensity > 0 ? std::min(*x, p.near_intensity) : *x);
      right = std::max(right, *x);
      low = std::min(low, p.flops_per_second);
      high = std::max(high, p.flops_per_second);
    }
    x_ = LogScale{nice_below(left / 1.2), nice_above(right * 2), area_.left, area_.right()};
    y_ = LogScale{nice_below(low / 1.2), nice_above(high * 1.3), area_.bottom(), area_.top};
    y_.high = std::max(y_.high, y_.low * std::pow(10, kLeastDecades));
  }

  // 1, 2 or 5 times a power of ten, next to the value.
  static double nice_below(double value) {
    const double power = std::pow(10, std::floor(std::log10(value)));
    return value >= 5 * power ? 5 * power : value >= 2 * power ? 2 * power : power;
  }
  static double nice_above(double value) {
    const double power = std::pow(10, std::floor(std::log10(value)));
    return value <= 2 * power ? 2 * power : value <= 5 * power ? 5 * power : 10 * power;
  }

  void draw_axes() {
    figure_.add(Rectangle{area_.left, area_.top, area_.width, area_.height, palette::kBand});
    for (const double tick : decade_ticks(x_.low, x_.high)) {
      const double x = x_(tick);
      figure_.add(Line{{x, area_.top}, {x, area_.bottom()}, palette::kGrid, 0.75});
      figure_.add(Text{{x, area_.bottom() + 15}, format_decade(tick), kSmallSize, Anchor::middle, palette::kText});
    }
    for (const double tick : decade_ticks(y_.low, y_.high)) {
      const double y = y_(tick);
      figure_.add(Line{{area_.left, y}, {area_.right(), y}, palette::kGrid, 0.75});
      figure_.add(Text{{area_.left - 5, y + 3.5}, format_decade(tick), kSmallSize, Anchor::end, palette::kText});
    }
    figure_.add(Line{{area_.left, area_.bottom()}, {area_.right(), area_.bottom()}, palette::kAxis, 0.75});
    figure_.add(Line{{area_.left, area_.top}, {area_.left, area_.bottom()}, palette::kAxis, 0.75});
    figure_.add(Text{{area_.left + area_.width / 2, area_.bottom() + 31},
                     "arithmetic intensity (FLOP per byte)",
                     kSmallSize,
                     Anchor::middle,
                     palette::kFaintText});
    figure_.add(Text{{area_.left - 42, area_.top + area_.height / 2},
                     "performance (FLOP/s)",
                     kSmallSize,
                     Anchor::middle,
                     palette::kFaintText,
                     false,
                     90});
  }

  void draw_roofs() {
    double highest = 0;
    for (const FlatRoof& roof : chart_.compute) highest = std::max(highest, roof.flops_per_second);
    for (const SlopedRoof& roof : chart_.memory) draw_slope(roof, highest > 0 ? highest : y_.high);
    for (const FlatRoof& roof : chart_.compute) draw_flat(roof);
  }

  void draw_slope(const SlopedRoof& roof, double highest) {
    const double from = std::max(x_.low, y_.low / roof.bytes_per_second);
    const double to = std::min(x_.high, highest / roof.bytes_per_second);
    if (!(from < to)) return;
    const Point a{x_(from), y_(from * roof.bytes_per_second)}, b{x_(to), y_(to * roof.bytes_per_second)};
    const std::string name = roof.name + " " + format_rate(roof.bytes_per_second);
    figure_.add(Line{a, b, palette::kLimit, 1.5}, name);
    slopes_.push_back({a, b, a.x + text_width(name, kSmallSize, true)});
    // Along the line, above its lower end.
    const double angle = std::atan2(a.y - b.y, b.x - a.x);
    const double along = 10, above = 5;
    figure_.add(Text{{a.x + along * std::cos(angle) - above * std::sin(angle),
                      a.y - along * std::sin(angle) - above * std::cos(angle)},
                     name,
                     kSmallSize,
                     Anchor::start,
                     palette::kLimit,
                     true,
                     angle * 180 / std::numbers::pi});
  }

  void draw_flat(const FlatRoof& roof) {
    double fastest = 0;
    for (const SlopedRoof& m : chart_.memory) fastest = std::max(fastest, m.bytes_per_second);
    const double from = fastest > 0 ? std::max(x_.low, roof.flops_per_second / fastest) : x_.low;
    if (!(from < x_.high) || roof.flops_per_second < y_.low) return;
    const double y = y_(roof.flops_per_second);
    const std::string name = roof.name + " " + format_flops(roof.flops_per_second);
    figure_.add(Line{{x_(from), y}, {area_.right(), y}, palette::kLimit, 1.5}, name);
    const Text text{{area_.right() - 4, y - 4}, name, kSmallSize, Anchor::end, palette::kLimit, true};
    taken_.push_back({text.at.x - text_width(name, kSmallSize, true), y - 14, text.at.x, y - 1});
    figure_.add(text);
  }

  static double radius_of(const RooflinePoint& p) {
    return std::max(kSmallestRadius, kLargestRadius * std::sqrt(std::clamp(p.share, 0.0, 1.0)));
  }

  void draw_points() {
    // The largest first, so that the small ones lie above them.
    for (const RooflinePoint& p : chart_.points)
      if (place(p)) draw_point(p);
    for (const RooflinePoint& p : chart_.points)
      if (place(p)) circles_.insert(circles_.end(), {box_of(p), line_of(p)});
    for (std::size_t i = 0; i < chart_.points.size() && i < kNumbered; ++i)
      if (place(chart_.points[i])) draw_number(chart_.points[i], i + 1);
  }

  // Where the point itself stands, or its line to the other intensity.
  Box line_of(const RooflinePoint& p) const {
    const double x = x_(*place(p)), y = y_(p.flops_per_second);
    const bool shown = std::isfinite(p.near_intensity) && p.near_intensity > 0;
    return {shown ? std::min(x, x_(p.near_intensity)) : x, y - 1, x, y + 1};
  }

  Box box_of(const RooflinePoint& p) const {
    const double x = x_(*place(p)), y = y_(p.flops_per_second), half = 0.8 * radius_of(p);
    return {x - half, y - half, x + half, y + half};
  }

  void draw_point(const RooflinePoint& p) {
    const double x = x_(*place(p)), y = y_(p.flops_per_second), radius = radius_of(p);
    Color color = palette::color_of(p.word);
    figure_.add(GroupBegin{p.name + ": " + p.detail});
    if (std::isfinite(p.near_intensity) && p.near_intensity > 0 && p.near_intensity < *place(p) * 0.98) {
      const double near = x_(p.near_intensity);
      figure_.add(Line{{near, y}, {x, y}, color, 1});
      figure_.add(Line{{near, y - 3}, {near, y + 3}, color, 1});
    }
    color.opacity = 190;
    figure_.add(Rectangle{x - radius, y - radius, 2 * radius, 2 * radius, color, palette::kText, radius});
    figure_.add(GroupEnd{});
  }

  // Beside its point, where nothing else is drawn or written.
  void draw_number(const RooflinePoint& p, std::size_t number) {
    const Point middle{x_(*place(p)), y_(p.flops_per_second)};
    const double radius = radius_of(p);
    const std::string text = std::to_string(number);
    const double half = text_width(text, kLabelSize, true) / 2 + 1;
    for (double far = radius + 8; far < 140; far += 9)
      for (int step = 0; step < 16; ++step) {
        const double turn = (step + 0.5) * std::numbers::pi / 8;
        const Point at{middle.x + far * std::cos(turn), middle.y - far * std::sin(turn)};
        const Box box{at.x - half, at.y - 6, at.x + half, at.y + 6};
        if (!is_free(box)) continue;
        if (far > radius + 10)
          figure_.add(Line{{middle.x + radius * std::cos(turn), middle.y - radius * std::sin(turn)},
                           {at.x - (half + 1) * std::cos(turn), at.y + 7 * std::sin(turn)},
                           palette::kAxis,
                           0.75});
        figure_.add(Text{{at.x, at.y + 4}, text, kLabelSize, Anchor::middle, palette::kText, true});
        taken_.push_back(box);
        return;
      }
  }

  bool is_free(const Box& box) const {
    if (box.left < area_.left || box.right > area_.right() || box.top < area_.top || box.bottom > area_.bottom())
      return false;
    const auto meets = [&](const Box& b) { return b.meets(box); };
    if (std::any_of(taken_.begin(), taken_.end(), meets) || std::any_of(circles_.begin(), circles_.end(), meets))
      return false;
    if (std::any_of(slopes_.begin(), slopes_.end(), [&](const Slope& slope) { return slope.meets(box); })) return false;
    return std::none_of(chart_.compute.begin(), chart_.compute.end(), [&](const FlatRoof& roof) {
      const double y = y_(roof.flops_per_second);
      return box.top < y + 1 && y - 1 < box.bottom;
    });
  }

  void draw_key() {
    const double left = area_.right() + 16;
    double y = area_.top + 4;
    const std::string heading =
        fmt::format("The {} operators of the most time", std::min(kNumbered, chart_.points.size()));
    figure_.add(Text{{left, y + 6}, heading, kLabelSize, Anchor::start, palette::kText, true});
    y += 16;
    for (std::size_t i = 0; i < chart_.points.size() && i < kNumbered; ++i, y += kKeyRow) {
      const RooflinePoint& p = chart_.points[i];
      const Color color = palette::color_of(p.word);
      figure_.add(GroupBegin{p.name + (p.module.empty() ? "" : " in " + p.module) + ": " + p.detail});
      figure_.add(Rectangle{left, y + 2, 20, 16, color, palette::kAxis, 2});
      figure_.add(
          Text{{left + 10, y + 14}, std::to_string(i + 1), kLabelSize, Anchor::middle, palette::text_on(color), true});
      double line = y + 10;
      for (const std::string& text : {p.name, p.module, p.detail + (place(p) ? "" : "; no FLOPs: not drawn")}) {
        if (text.empty()) continue;
        const double room = figure_.width - kMargin - left - 28;
        figure_.add(Text{{left + 28, line},
                         fit_text(text, room, kSmallSize),
                         kSmallSize,
                         Anchor::start,
                         line == y + 10 ? palette::kText : palette::kFaintText});
        line += kKeyLine;
      }
      figure_.add(GroupEnd{});
    }
  }

  const RooflineChart& chart_;
  Figure figure_;
  Area area_;
  LogScale x_, y_;
  std::vector<Slope> slopes_;
  std::vector<Box> taken_, circles_;  // by texts, by points
};

}  // namespace

Figure draw_roofline(const RooflineChart& chart) { return RooflineDrawing(chart).draw(); }

}  // namespace memwall
