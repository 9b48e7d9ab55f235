#include "traces/figure/tornado_figure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "traces/figure/palette.h"
#include "traces/figure/text_metrics.h"

namespace memwall {
namespace {

using namespace plot;

constexpr double kBarRow = 46, kBarHeight = 20, kBarNames = 190, kMostEndText = 230;

class TornadoDrawing {
 public:
  explicit TornadoDrawing(const TornadoChart& chart) : chart_(chart), order_(chart.bars.size()) {
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    std::ranges::stable_sort(order_, std::greater{}, [&](std::size_t i) { return span_of(chart.bars[i]); });
    left_out_ = order_.size() - std::min(order_.size(), kMostBars);
    order_.resize(order_.size() - left_out_);
  }

  Figure draw() {
    figure_.width = kFigureWidth;
    figure_.title = chart_.title;
    double y = draw_title(figure_, chart_.title, chart_.subtitle);
    y = draw_legend(
        figure_, kMargin + kBarNames, y, kFigureWidth - kMargin,
        {{"less than the base", palette::kBlue, LegendMark::box}, {"more", palette::kOrange, LegendMark::box}});
    area_ = {kMargin + kBarNames, y + 22, kFigureWidth - 2 * kMargin - kBarNames,
             std::max(2.0, static_cast<double>(order_.size())) * kBarRow};
    lay_out();
    for (std::size_t row = 0; row < order_.size(); ++row) draw_bar(chart_.bars[order_[row]], row);
    draw_base();
    figure_.height = area_.bottom() + kBelowAxis;
    return std::move(figure_);
  }

 private:
  // Of both ends and the base: from the least of them to the most.
  double span_of(const TornadoBar& bar) const {
    const auto [least, most] = std::minmax({bar.low.outcome, bar.high.outcome, chart_.base});
    return most - least;
  }

  std::string text_of(const TornadoEnd& end) const {
    return fmt::format("{}: {}", end.value, number_text(chart_.outcome.unit, end.outcome));
  }

  // Bars leave room for the texts at their ends.
  void lay_out() {
    std::vector<double> outcomes{chart_.base};
    double widest = 40;
    for (const std::size_t i : order_)
      for (const TornadoEnd& end : {chart_.bars[i].low, chart_.bars[i].high}) {
        outcomes.push_back(end.outcome);
        widest = std::max(widest, text_width(text_of(end), kSmallSize));
      }
    room_ = std::min(widest, kMostEndText) + 8;
    NumberAxis axis = chart_.outcome;
    // Lengths are compared.
    if (axis.scaling == AxisScaling::automatic) axis.scaling = AxisScaling::linear;
    x_.emplace(axis, outcomes, area_.left + room_, area_.right() - room_);
    draw_bottom_axis(figure_, area_, ticks(), x_->label());
    if (left_out_ > 0)
      figure_.add(Text{{kMargin, area_.bottom() + 16},
                       fmt::format("and {} with less", left_out_),
                       kSmallSize,
                       Anchor::start,
                       palette::kFaintText});
    if (order_.empty())
      figure_.add(Text{{area_.left + area_.width / 2, area_.top + 20},
                       "nothing was varied",
                       kLabelSize,
                       Anchor::middle,
                       palette::kFaintText});
  }

  std::vector<AxisTick> ticks() const { return x_->ticks(std::max(3, static_cast<int>(area_.width / 110))); }

  void draw_bar(const TornadoBar& bar, std::size_t row) {
    const double top = area_.top + kBarRow * static_cast<double>(row), middle = top + kBarRow / 2;
    figure_.add(GroupBegin{fmt::format("{}: {}, {}", bar.name, text_of(bar.low), text_of(bar.high))});
    draw_name(bar, middle);
    const bool swap = bar.low.outcome > bar.high.outcome;
    const TornadoEnd &least = swap ? bar.high : bar.low, &most = swap ? bar.low : bar.high;
    // On one side of the base the shorter end lies upon the longer.
    if (most.outcome <= chart_.base) {
      draw_half(least.outcome, middle), draw_half(most.outcome, middle);
    } else {
      draw_half(most.outcome, middle), draw_half(least.outcome, middle);
    }
    const bool is_one = least.outcome == most.outcome;
    if (is_one && least.outcome == chart_.base) {
      figure_.add(Text{
          {(*x_)(chart_.base) + 6, middle + 3.5}, "changes nothing", kSmallSize, Anchor::start, palette::kFaintText});
      return figure_.add(GroupEnd{});
    }
    if (!is_one || least.outcome <= chart_.base) write_end(least, middle, true);
    if (!is_one || least.outcome > chart_.base) write_end(most, middle, false);
    figure_.add(GroupEnd{});
  }

  void draw_name(const TornadoBar& bar, double middle) {
    double line = middle - (bar.note.empty() ? 1 : 7);
    const auto say = [&](const std::string& text, double size, Color color) {
      figure_.add(Text{{area_.left - 8, line}, fit_text(text, kBarNames - 12, size), size, Anchor::end, color}, text);
      line += 12;
    };
    say(bar.name, kLabelSize, palette::kText);
    say("base: " + bar.base_value, kSmallSize, palette::kFaintText);
    if (!bar.note.empty()) say(bar.note, kSmallSize, palette::kFaintText);
  }

  void draw_half(double outcome, double middle) {
    const double from = (*x_)(chart_.base), to = (*x_)(outcome);
    if (from == to) return;
    figure_.add(Rectangle{std::min(from, to), middle - kBarHeight / 2, std::abs(to - from), kBarHeight,
                          outcome < chart_.base ? palette::kBlue : palette::kOrange, palette::kBackground});
  }

  // Left of the bar, or right of it.
  void write_end(const TornadoEnd& end, double middle, bool is_left) {
    const double base = (*x_)(chart_.base), own = (*x_)(end.outcome);
    const double at = is_left ? std::min(base, own) - 5 : std::max(base, own) + 5;
    figure_.add(Text{{at, middle + 3.5},
                     fit_text(text_of(end), room_ - 6, kSmallSize),
                     kSmallSize,
                     is_left ? Anchor::end : Anchor::start,
                     palette::kText});
  }

  void draw_base() {
    const double at = (*x_)(chart_.base);
    const std::string text = fmt::format("{}: {}", chart_.base_name, number_text(chart_.outcome.unit, chart_.base));
    const std::string shown = fit_text(text, area_.width, kSmallSize);
    const double half = text_width(shown, kSmallSize) / 2;
    figure_.add(Line{{at, area_.top - 4}, {at, area_.bottom()}, palette::kText, 1.25}, text);
    figure_.add(
        Text{{std::clamp(at, area_.left + half, std::max(area_.left + half, area_.right() - half)), area_.top - 9},
             shown,
             kSmallSize,
             Anchor::middle,
             palette::kText});
  }

  const TornadoChart& chart_;
  std::vector<std::size_t> order_;  // of the bars that are drawn
  std::size_t left_out_ = 0;
  double room_ = 0;
  Figure figure_;
  Area area_;
  std::optional<AxisLayout> x_;
};

}  // namespace

Figure draw_tornado(const TornadoChart& chart) { return TornadoDrawing(chart).draw(); }

}  // namespace memwall
