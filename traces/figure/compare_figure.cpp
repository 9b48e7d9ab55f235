#include "traces/figure/compare_figure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "traces/figure/palette.h"
#include "traces/figure/plot.h"
#include "traces/figure/text_metrics.h"

namespace memwall {
namespace {

using namespace plot;

constexpr double kRunBar = 24, kRunRow = 34, kTotalRoom = 150, kMostRunLabel = 230, kLine = 12;
constexpr double kWaterfallHeight = 190;

std::string print(Quantity quantity, double value) {
  return quantity == Quantity::seconds ? format_time(from_seconds(value)) : format_bytes(value);
}

std::string print_change(Quantity quantity, double value) {
  return (value < 0 ? "\xe2\x88\x92" : "+") + print(quantity, std::abs(value));
}

ScaledUnit unit_of(Quantity quantity, double largest) {
  return quantity == Quantity::seconds ? time_unit(largest) : byte_unit(largest);
}

std::vector<Part> parts_of(const CompareBar& bar, Quantity quantity) {
  std::vector<Part> parts;
  for (const ComparePart& part : bar.parts) parts.push_back({part.name, part.value, print(quantity, part.value)});
  return parts;
}

double total(const CompareBar& bar) {
  double sum = 0;
  for (const ComparePart& part : bar.parts) sum += part.value;
  return sum;
}

class Comparison {
 public:
  explicit Comparison(const CompareChart& chart) : chart_(chart) {}

  Figure draw() {
    figure_.width = kFigureWidth;
    figure_.title = chart_.title;
    y_ = draw_title(figure_, chart_.title, chart_.subtitle);
    double labels = 60;
    for (const ComparePanel& panel : chart_.panels)
      for (const CompareBar& bar : panel.bars) labels = std::max(labels, text_width(bar.label, kSmallSize));
    left_ = kMargin + std::min(labels, kMostRunLabel) + 8;
    for (const ComparePanel& panel : chart_.panels) draw_panel(panel);
    for (const Waterfall& waterfall : chart_.waterfalls) draw_waterfall(waterfall);
    figure_.height = y_ + 4;
    return std::move(figure_);
  }

 private:
  void draw_heading(const std::string& text) {
    figure_.add(Text{{kMargin, y_ + 12}, text, kLabelSize + 1, Anchor::start, palette::kText, true});
    y_ += 22;
  }

  void draw_panel(const ComparePanel& panel) {
    draw_heading(panel.title);
    std::vector<std::vector<Part>> bars;
    double full = panel.limit;
    for (const CompareBar& bar : panel.bars) {
      bars.push_back(parts_of(bar, panel.quantity));
      full = std::max(full, total(bar));
    }
    full = full > 0 ? full * 1.02 : 1;
    y_ = draw_legend(figure_, left_, y_, kFigureWidth - kMargin, legend_of(bars)) + (panel.limit > 0 ? 14 : 2);
    const Area area{left_, y_, kFigureWidth - kMargin - left_ - kTotalRoom, static_cast<double>(bars.size()) * kRunRow};
    draw_scale(panel.quantity, area, full);
    for (std::size_t i = 0; i < bars.size(); ++i) {
      draw_bar(panel, i, bars[i], {area.left, y_ + (kRunRow - kRunBar) / 2, area.width, kRunBar}, full);
      y_ += kRunRow;
    }
    if (panel.limit > 0) draw_limit(panel, area, full);
    y_ += 44;
  }

  void draw_scale(Quantity quantity, const Area& area, double full) {
    const ScaledUnit unit = unit_of(quantity, full);
    const int most = 8;
    const double step = nice_step(full / unit.factor, most - 1);
    for (const double tick : nice_ticks(0, full / unit.factor, most)) {
      const double x = Scale{0, full, area.left, area.right()}(tick * unit.factor);
      figure_.add(Line{{x, area.top}, {x, area.bottom()}, palette::kGrid, 0.75});
      figure_.add(Text{{x, area.bottom() + 12}, format_tick(tick, step), kSmallSize, Anchor::middle, palette::kText});
    }
    figure_.add(
        Text{{area.right() + 10, area.bottom() + 12}, unit.name, kSmallSize, Anchor::start, palette::kFaintText});
  }

  void draw_bar(const ComparePanel& panel, std::size_t i, const std::vector<Part>& parts, const Area& bar,
                double full) {
    const std::string& label = panel.bars[i].label;
    draw_label(label, bar.left - 8, bar.top + kRunBar / 2);
    draw_stacked_bar(figure_, bar, parts, full);
    const double value = total(panel.bars[i]), base = total(panel.bars[0]);
    const bool recorded = panel.bars[i].recorded;
    std::string words = recorded ? print(panel.quantity, value) : "not recorded";
    if (i > 0 && base > 0 && recorded) words += fmt::format("  ({:+.1f} %)", 100 * (value / base - 1));
    figure_.add(
        Text{{bar.right() + 10, bar.top + kRunBar / 2 + 3.5}, words, kSmallSize, Anchor::start, palette::kText, true});
  }

  // In at most two lines; the whole of it on hovering.
  void draw_label(const std::string& label, double right, double middle) {
    const std::vector<std::string> lines = wrap_text(label, right - kMargin, kSmallSize, false, 2);
    double y = middle + 3.5 - (lines.size() > 1 ? kLine / 2 : 0);
    figure_.add(GroupBegin{label});
    for (const std::string& line : lines) {
      figure_.add(Text{{right, y}, line, kSmallSize, Anchor::end, palette::kText});
      y += kLine;
    }
    figure_.add(GroupEnd{});
  }

  void draw_limit(const ComparePanel& panel, const Area& area, double full) {
    const double x = Scale{0, full, area.left, area.right()}(panel.limit);
    figure_.add(Line{{x, area.top - 3}, {x, area.bottom()}, palette::kLimit, 1.5, true});
    const std::string text = panel.limit_name + " " + print(panel.quantity, panel.limit);
    const bool fits_right = x - 4 + text_width(text, kSmallSize, true) < kFigureWidth - kMargin;
    figure_.add(
        Text{{x, area.top - 5}, text, kSmallSize, fits_right ? Anchor::start : Anchor::end, palette::kLimit, true});
  }

  // Columns from left to right: the base, each change hanging where the last one ended, the other.
  void draw_waterfall(const Waterfall& waterfall) {
    std::vector<ComparePart> changes;
    for (const ComparePart& change : waterfall.changes)
      if (change.value != 0) changes.push_back(change);
    double low = 0, high = waterfall.base, level = waterfall.base;
    for (const ComparePart& change : changes) {
      level += change.value;
      low = std::min(low, level);
      high = std::max(high, level);
    }
    draw_heading(waterfall.title);
    const Area area{kMargin + 46, y_ + 16, kFigureWidth - 2 * kMargin - 46, kWaterfallHeight};
    const ScaledUnit unit = unit_of(waterfall.quantity, std::max(high, -low));
    draw_value_axis(figure_, area, std::max(high * 1.08, 1e-12), unit, unit.name, 6);
    const Scale y{0, std::max(high * 1.08, 1e-12), area.bottom(), area.top};
    const double slot = area.width / static_cast<double>(changes.size() + 2);
    draw_column(waterfall.base_label, 0, waterfall.base, print(waterfall.quantity, waterfall.base), palette::kBand,
                area, slot, 0, y);
    double at = waterfall.base;
    for (std::size_t i = 0; i < changes.size(); ++i) {
      draw_column(changes[i].name, at, at + changes[i].value, print_change(waterfall.quantity, changes[i].value),
                  palette::color_of(changes[i].name), area, slot, i + 1, y);
      at += changes[i].value;
    }
    draw_column(waterfall.other_label, 0, at, print(waterfall.quantity, at), palette::kBand, area, slot,
                changes.size() + 1, y);
    figure_.add(Line{{area.left, area.bottom()}, {area.right(), area.bottom()}, palette::kAxis, 0.75});
    y_ = area.bottom() + 40;
  }

  void draw_column(const std::string& name, double from, double to, const std::string& value, Color color,
                   const Area& area, double slot, std::size_t index, const Scale& y) {
    const double width = std::min(slot * 0.62, 90.0);
    const double middle = area.left + slot * (static_cast<double>(index) + 0.5);
    const double top = y(std::max(from, to)), bottom = y(std::min(from, to));
    figure_.add(GroupBegin{name + ": " + value});
    figure_.add(Rectangle{middle - width / 2, top, width, std::max(bottom - top, 0.75), color, palette::kAxis});
    figure_.add(Line{{middle + width / 2, y(to)},
                     {std::min(middle + slot - width / 2, area.right()), y(to)},
                     palette::kAxis,
                     0.75,
                     true});
    figure_.add(
        Text{{middle, top - 4}, fit_text(value, slot - 2, kSmallSize), kSmallSize, Anchor::middle, palette::kText});
    double line_y = area.bottom() + 14;
    for (const std::string& line : wrap_text(name, slot - 4, kSmallSize, false, 2)) {
      figure_.add(Text{{middle, line_y}, line, kSmallSize, Anchor::middle, palette::kText});
      line_y += kLine;
    }
    figure_.add(GroupEnd{});
  }

  const CompareChart& chart_;
  Figure figure_;
  double y_ = 0, left_ = 0;
};

}  // namespace

Figure draw_comparison(const CompareChart& chart) { return Comparison(chart).draw(); }

}  // namespace memwall
