#include "traces/figure/heat_map_figure.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "traces/figure/name_axis.h"
#include "traces/figure/palette.h"
#include "traces/figure/text_metrics.h"

namespace memwall {
namespace {

using namespace plot;

constexpr double kHeatKey = 170, kMostNameWidth = 190, kHeatHeight = 400, kLeastCell = 22, kMostCell = 56;
constexpr double kLeastFramed = 7;  // side of a cell
constexpr std::size_t kRampSteps = 64;
constexpr double kColoursLogarithmicFrom = 8;  // largest value by least: few colours are told apart
// Every eighth of viridis.
constexpr std::array kViridis{Color{68, 1, 84},    Color{71, 44, 122},  Color{59, 81, 139},
                              Color{44, 113, 142}, Color{33, 144, 141}, Color{39, 173, 129},
                              Color{92, 200, 99},  Color{170, 220, 50}, Color{253, 231, 37}};

class HeatMapDrawing {
 public:
  explicit HeatMapDrawing(const HeatMapChart& chart) : chart_(chart) {}

  Figure draw() {
    figure_.width = kFigureWidth;
    figure_.title = chart_.title;
    const double y = draw_title(figure_, chart_.title, chart_.subtitle);
    double names = 20;
    for (const std::string& row : chart_.rows) names = std::max(names, text_width(row, kSmallSize));
    const double left = kMargin + 26 + std::min(names, kMostNameWidth) + 6;
    const auto rows = static_cast<double>(chart_.rows.size());
    const double height = std::clamp(kHeatHeight / rows, rows > 100 ? 2.0 : kLeastCell, kMostCell) * rows;
    area_ = {left, y + 8, kFigureWidth - kMargin - left - kHeatKey, height};
    read_values();
    draw_cells();
    frame_best();
    draw_column_names();
    draw_row_names();
    draw_key();
    figure_.height = std::max(area_.bottom() + below_, key_bottom_ + 16);
    return std::move(figure_);
  }

 private:
  double cell_width() const { return area_.width / static_cast<double>(chart_.columns.size()); }
  double cell_height() const { return area_.height / static_cast<double>(chart_.rows.size()); }
  Area place(std::size_t cell) const {
    const std::size_t column = cell % chart_.columns.size(), row = cell / chart_.columns.size();
    return {area_.left + cell_width() * static_cast<double>(column),
            area_.top + cell_height() * static_cast<double>(row), cell_width(), cell_height()};
  }

  void read_values() {
    std::vector<double> values;
    for (const HeatCell& cell : chart_.cells) {
      if (cell.value) values.push_back(*cell.value);
      has_missed_ |= cell.value && cell.state == PointState::misses;
      has_failed_ |= cell.state == PointState::failed;
    }
    NumberAxis axis = chart_.value;
    if (!values.empty()) {
      const auto [low, high] = std::ranges::minmax(values);
      low_ = low, high_ = high;
      const bool far_apart = low > 0 && high > kColoursLogarithmicFrom * low;
      if (axis.scaling == AxisScaling::automatic && far_apart) axis.scaling = AxisScaling::logarithmic;
    }
    scale_.emplace(axis, values, 0.0, 1.0);
  }

  // The ramp is for the values that there are, without the room that an axis leaves.
  double share_of(double value) const {
    const double low = (*scale_)(low_), high = (*scale_)(high_);
    return high > low ? std::clamp(((*scale_)(value)-low) / (high - low), 0.0, 1.0) : 0.5;
  }

  void draw_cells() {
    for (std::size_t i = 0; i < chart_.cells.size(); ++i) {
      const HeatCell& cell = chart_.cells[i];
      const Area at = place(i);
      figure_.add(GroupBegin{cell.detail});
      const Color edge = std::min(at.width, at.height) > 6 ? palette::kBackground : kNoColor;
      const Color fill = cell.value ? heat_color(share_of(*cell.value)) : palette::kBand;
      figure_.add(Rectangle{at.left, at.top, at.width, at.height, fill, edge});
      if (cell.state == PointState::failed)
        draw_cross(figure_, {at.left + at.width / 2, at.top + at.height / 2}, palette::kGray);
      else if (cell.value && cell.state == PointState::misses)
        hatch(at, palette::text_on(fill));
      if (cell.value) write_value(at, fill, *cell.value);
      figure_.add(GroupEnd{});
    }
  }

  // Lines from the lower left to the upper right, cut at the cell's border.
  void hatch(const Area& at, Color color) {
    color.opacity = 90;
    for (double c = 6; c < at.width + at.height; c += 7) {
      const Point low = c <= at.height ? Point{at.left, at.top + c} : Point{at.left + c - at.height, at.bottom()};
      const Point high = c <= at.width ? Point{at.left + c, at.top} : Point{at.right(), at.top + c - at.width};
      figure_.add(Line{low, high, color, 0.75});
    }
  }

  void write_value(const Area& at, Color fill, double value) {
    if (at.height < kSmallSize + 3) return;
    std::string text = number_text(chart_.value.unit, value);
    if (text_width(text, kSmallSize) + 5 > at.width) text = text.substr(0, text.find(' '));  // its unit is in the key
    if (text_width(text, kSmallSize) + 4 > at.width) return;
    figure_.add(Text{{at.left + at.width / 2, at.top + at.height / 2 + 3.5},
                     text,
                     kSmallSize,
                     Anchor::middle,
                     palette::text_on(fill)});
  }

  void frame_best() {
    if (!chart_.more_is_better || low_ == high_ || std::min(cell_width(), cell_height()) < kLeastFramed) return;
    const HeatCell* best = nullptr;
    for (const HeatCell& cell : chart_.cells) {
      if (!cell.value || cell.state != PointState::meets) continue;
      if (best == nullptr || (*chart_.more_is_better ? *cell.value > *best->value : *cell.value < *best->value))
        best = &cell;
    }
    if (best == nullptr) return;
    has_best_ = true;
    for (std::size_t i = 0; i < chart_.cells.size(); ++i)
      if (chart_.cells[i].value == best->value && chart_.cells[i].state == PointState::meets) frame(i);
  }

  void frame(std::size_t cell) {
    const Area at = place(cell);
    figure_.add(Polyline{{{at.left, at.top},
                          {at.right(), at.top},
                          {at.right(), at.bottom()},
                          {at.left, at.bottom()},
                          {at.left, at.top}},
                         palette::kLimit,
                         2.5,
                         kNoColor},
                "the best: " + chart_.cells[cell].detail);
  }

  void draw_column_names() {
    std::vector<AxisTick> names;
    for (std::size_t i = 0; i < chart_.columns.size(); ++i)
      names.push_back({area_.left + cell_width() * (static_cast<double>(i) + 0.5), chart_.columns[i]});
    below_ = draw_name_axis(figure_, area_, names, chart_.x_name, false);
  }

  void draw_row_names() {
    const auto every = static_cast<std::size_t>(std::ceil((kSmallSize + 2) / cell_height()));
    for (std::size_t i = 0; i < chart_.rows.size(); i += every) {
      figure_.add(GroupBegin{chart_.rows[i]});
      figure_.add(Text{{area_.left - 6, area_.top + cell_height() * (static_cast<double>(i) + 0.5) + 3.5},
                       fit_text(chart_.rows[i], kMostNameWidth, kSmallSize),
                       kSmallSize,
                       Anchor::end,
                       palette::kText});
      figure_.add(GroupEnd{});
    }
    figure_.add(Text{{kMargin + 8, area_.top + area_.height / 2},
                     fit_text(chart_.y_name, area_.height, kLabelSize),
                     kLabelSize,
                     Anchor::middle,
                     palette::kFaintText,
                     false,
                     90});
  }

  void draw_key() {
    const double left = area_.right() + 22, width = 16;
    const double height = std::clamp(area_.height - 110, 120.0, 300.0);
    double line = area_.top - 4;
    figure_.add(GroupBegin{scale_->label()});
    for (const std::string& part : wrap_text(scale_->label(), kFigureWidth - 6 - left, kSmallSize, false, 3))
      figure_.add(Text{{left, line += 12}, part, kSmallSize, Anchor::start, palette::kFaintText});
    figure_.add(GroupEnd{});
    line += 14;
    if (!numbers_are_missing()) draw_ramp({left, line, width, height}), line += high_ > low_ ? height : width;
    const auto say = [&](const std::string& text) {
      figure_.add(Text{{left + width + 6, line + 3.5}, text, kSmallSize, Anchor::start, palette::kFaintText});
    };
    if (chart_.more_is_better) {
      line += 22;
      if (has_best_) figure_.add(Rectangle{left + 2, line - 6, 12, 12, kNoColor, palette::kLimit});
      say(*chart_.more_is_better ? "the most" : "the least");
    }
    if (has_missed_) {
      line += 20;
      figure_.add(Rectangle{left + 2, line - 6, 12, 12, palette::kLightGray});
      hatch({left + 2, line - 6, 12, 12}, palette::kText);
      say("misses conditions");
    }
    if (has_failed_) {
      line += 20;
      draw_cross(figure_, {left + 8, line}, palette::kGray);
      say("failed");
    }
    key_bottom_ = line;
  }

  bool numbers_are_missing() const {
    return std::ranges::none_of(chart_.cells, [](const HeatCell& cell) { return cell.value.has_value(); });
  }

  void draw_ramp(const Area& ramp) {
    if (!(high_ > low_)) {
      figure_.add(Rectangle{ramp.left, ramp.top, ramp.width, ramp.width, heat_color(0.5)});
      figure_.add(Text{{ramp.right() + 6, ramp.top + 12},
                       number_text(chart_.value.unit, low_),
                       kSmallSize,
                       Anchor::start,
                       palette::kText});
      return;
    }
    const double step = ramp.height / kRampSteps;
    for (std::size_t i = 0; i < kRampSteps; ++i)
      figure_.add(Rectangle{ramp.left, ramp.bottom() - step * static_cast<double>(i + 1), ramp.width, step + 0.3,
                            heat_color((static_cast<double>(i) + 0.5) / kRampSteps)});
    double free_below = ramp.bottom() + 20;
    for (const AxisTick& tick : ticks()) {
      const double y = ramp.bottom() - tick.at * ramp.height;
      if (y + 6 > free_below) continue;
      free_below = y - 6;
      figure_.add(Line{{ramp.right(), y}, {ramp.right() + 3, y}, palette::kAxis, 0.75});
      figure_.add(Text{{ramp.right() + 6, y + 3.5}, tick.text, kSmallSize, Anchor::start, palette::kText});
    }
  }

  // Of the ramp: as shares of it.
  std::vector<AxisTick> ticks() const {
    const double low = (*scale_)(low_), high = (*scale_)(high_);
    std::vector<AxisTick> found;
    for (AxisTick tick : scale_->ticks(8)) {
      tick.at = (tick.at - low) / (high - low);
      if (tick.at > -1e-9 && tick.at < 1 + 1e-9) found.push_back(std::move(tick));
    }
    return found;
  }

  const HeatMapChart& chart_;
  Figure figure_;
  Area area_;
  std::optional<AxisLayout> scale_;
  double low_ = 0, high_ = 0, key_bottom_ = 0, below_ = 0;
  bool has_missed_ = false, has_failed_ = false, has_best_ = false;
};

}  // namespace

Color heat_color(double share) {
  const double at = std::clamp(share, 0.0, 1.0) * (kViridis.size() - 1);
  const auto below = std::min(static_cast<std::size_t>(at), kViridis.size() - 2);
  const double part = at - static_cast<double>(below);
  const auto between = [&](std::uint8_t a, std::uint8_t b) {
    return static_cast<std::uint8_t>(std::lround(a + part * (static_cast<double>(b) - a)));
  };
  const Color a = kViridis[below], b = kViridis[below + 1];
  return {between(a.red, b.red), between(a.green, b.green), between(a.blue, b.blue)};
}

Figure draw_heat_map(const HeatMapChart& chart) { return HeatMapDrawing(chart).draw(); }

}  // namespace memwall
