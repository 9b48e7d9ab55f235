#include "traces/figure/budget_time_figure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "traces/figure/axis.h"
#include "traces/figure/palette.h"
#include "traces/figure/plot.h"
#include "traces/figure/series_marks.h"
#include "traces/figure/text_metrics.h"

namespace memwall {
namespace {

using namespace plot;

constexpr double kBudgetKeyWidth = 316, kBudgetKeyRow = 17, kBudgetKeyHead = 62, kLeastPlot = 380;
constexpr double kCell = 30, kLeftOfPlot = 58;
constexpr double kBudgetsLogarithmicFrom = 3;  // largest time by least

class BudgetTimeDrawing {
 public:
  explicit BudgetTimeDrawing(const BudgetTimeChart& chart) : chart_(chart) {}

  Figure draw() {
    figure_.width = kFigureWidth;
    figure_.title = chart_.title;
    double y = draw_title(figure_, chart_.title, chart_.subtitle);
    y = draw_legend(figure_, kMargin + kLeftOfPlot, y, kFigureWidth - kMargin, legend());
    const double key = kBudgetKeyHead + kBudgetKeyRow * static_cast<double>(chart_.lines.size()) + 40;
    area_ = {kMargin + kLeftOfPlot, y + 8, kFigureWidth - 2 * kMargin - kLeftOfPlot - kBudgetKeyWidth - 18,
             std::max(kLeastPlot, key - 50)};
    choose_scales();
    draw_axes();
    draw_levels();
    for (std::size_t line = 0; line < chart_.lines.size(); ++line) draw_line(line);
    draw_front();
    for (std::size_t line = 0; line < chart_.lines.size(); ++line) draw_markers(line);
    draw_where_nothing_fits();
    draw_key();
    figure_.height = area_.bottom() + 62;
    return std::move(figure_);
  }

 private:
  std::vector<LegendEntry> legend() const {
    std::vector<LegendEntry> entries{{"Pareto front: the least budget for each time", palette::kText, LegendMark::line}};
    if (std::any_of(chart_.budgets.begin(), chart_.budgets.end(), [](const auto& b) { return b.bound_seconds; }))
      entries.push_back({"lower bound: no plan is faster", palette::kLimit, LegendMark::dashes});
    if (chart_.unlimited_seconds)
      entries.push_back({"the step with unlimited memory", palette::kLightGray, LegendMark::line});
    return entries;
  }

  void choose_scales() {
    double low = chart_.unlimited_seconds.value_or(INFINITY), high = chart_.unlimited_seconds.value_or(0);
    const auto take = [&](double seconds) { low = std::min(low, seconds), high = std::max(high, seconds); };
    for (const BudgetMark& budget : chart_.budgets)
      if (budget.bound_seconds) take(*budget.bound_seconds);
    for (const BudgetLine& line : chart_.lines)
      for (const BudgetPoint& point : line.points)
        if (point.outcome == BudgetOutcome::fits) take(point.seconds);
    high = std::max(high, 1e-12);
    low = std::clamp(low, high * 1e-6, high);
    is_log_ = high / low > kBudgetsLogarithmicFrom;
    const double room = is_log_ ? 0 : std::max((high - low) * 0.08, high * 0.01);
    time_low_ = is_log_ ? low / 1.15 : std::max(0.0, low - room);
    time_high_ = is_log_ ? high * 1.15 : high + room;
    const auto most = static_cast<double>(chart_.budgets.front().bytes);
    const auto least = static_cast<double>(chart_.budgets.back().bytes);
    const double margin = (most - least) * 0.08;
    budget_ = most > least ? Scale{std::max(0.0, least - margin), most + margin, area_.left, area_.right()}
                           : Scale{0, most * 2, area_.left, area_.right()};
  }

  double y(double seconds) const {
    if (is_log_) return LogScale{time_low_, time_high_, area_.bottom(), area_.top}(std::max(seconds, time_low_));
    return Scale{time_low_, time_high_, area_.bottom(), area_.top}(seconds);
  }
  double x(std::size_t budget) const { return budget_(static_cast<double>(chart_.budgets[budget].bytes)); }

  // 1, 1.5, 2, 3, 5, 7 times powers of ten, or multiples of a round number.
  std::vector<double> time_ticks(double factor) const {
    if (!is_log_) return nice_ticks(time_low_ / factor, time_high_ / factor, 9);
    std::vector<double> ticks;
    const bool many = time_high_ / time_low_ < 30;
    for (double power = std::pow(10, std::floor(std::log10(time_low_ / factor))); power * factor <= time_high_;
         power *= 10)
      for (const double digit : {1.0, 1.5, 2.0, 3.0, 5.0, 7.0}) {
        if (!many && digit != 1.0 && digit != 3.0) continue;
        if (digit * power * factor >= time_low_ && digit * power * factor <= time_high_) ticks.push_back(digit * power);
      }
    return ticks;
  }

  void draw_axes() {
    const ScaledUnit unit = time_unit(time_high_);
    const double step = is_log_ ? 0 : nice_step((time_high_ - time_low_) / unit.factor, 8);
    for (const double tick : time_ticks(unit.factor)) {
      const double at = y(tick * unit.factor);
      const std::string text = is_log_ ? fmt::format("{:g}", tick) : format_tick(tick, step);
      figure_.add(Line{{area_.left, at}, {area_.right(), at}, palette::kGrid, 0.75});
      figure_.add(Text{{area_.left - 5, at + 3.5}, text, kSmallSize, Anchor::end, palette::kText});
    }
    figure_.add(Text{{kMargin + 8, area_.top + area_.height / 2},
                     fmt::format("step time ({}{})", unit.name, is_log_ ? ", logarithmic" : ""),
                     kLabelSize, Anchor::middle, palette::kFaintText, false, 90});
    figure_.add(Line{{area_.left, area_.top}, {area_.left, area_.bottom()}, palette::kAxis, 0.75});
    figure_.add(Line{{area_.left, area_.bottom()}, {area_.right(), area_.bottom()}, palette::kAxis, 0.75});
    draw_budget_axis();
  }

  // Every budget has its line; its name stands below where it does not touch the one before, of the right.
  void draw_budget_axis() {
    double free_to = area_.right() + 30;
    for (std::size_t b = 0; b < chart_.budgets.size(); ++b) {
      const BudgetMark& budget = chart_.budgets[b];
      const std::string size = format_bytes(budget.bytes);
      figure_.add(Line{{x(b), area_.top}, {x(b), area_.bottom() + 4}, palette::kGrid, 0.75});
      const double half = std::max(text_width(budget.name, kSmallSize), text_width(size, kSmallSize)) / 2 + 3;
      if (x(b) + half > free_to || x(b) - half < kMargin) continue;
      free_to = x(b) - half;
      figure_.add(Text{{x(b), area_.bottom() + 16}, budget.name, kSmallSize, Anchor::middle, palette::kText});
      if (size != budget.name)
        figure_.add(Text{{x(b), area_.bottom() + 28}, size, kSmallSize, Anchor::middle, palette::kFaintText});
    }
    figure_.add(Text{{area_.left + area_.width / 2, area_.bottom() + 46}, "budget: GPU memory for the step",
                     kLabelSize, Anchor::middle, palette::kFaintText});
  }

  // The step with unlimited memory, and the bound.
  void draw_levels() {
    if (chart_.unlimited_seconds) {
      const double level = y(*chart_.unlimited_seconds);
      figure_.add(Line{{area_.left, level}, {area_.right(), level}, palette::kLightGray, 1.5},
                  "with unlimited memory: " + format_time(from_seconds(*chart_.unlimited_seconds)));
    }
    std::optional<Point> before;
    for (std::size_t b = 0; b < chart_.budgets.size(); ++b) {
      const auto& bound = chart_.budgets[b].bound_seconds;
      if (!bound) {
        before.reset();
        continue;
      }
      const Point here{x(b), y(*bound)};
      const std::string title =
          fmt::format("lower bound at {}: {}", chart_.budgets[b].name, format_time(from_seconds(*bound)));
      if (before) figure_.add(Line{*before, here, palette::kLimit, 1.5, true}, title);
      figure_.add(Line{{here.x - 7, here.y}, {here.x + 7, here.y}, palette::kLimit, 1.5}, title);
      before = here;
    }
  }

  // What stands at the same place is moved apart, a little to either side.
  double place(std::size_t line, std::size_t budget) const {
    const BudgetPoint& own = chart_.lines[line].points[budget];
    int at_the_same = 0;
    for (std::size_t other = 0; other < line && !own.is_on_front; ++other) {
      const BudgetPoint& point = chart_.lines[other].points[budget];
      if (point.outcome == BudgetOutcome::fits && std::abs(y(point.seconds) - y(own.seconds)) < kMarker) ++at_the_same;
    }
    const double away = std::min(3, (at_the_same + 1) / 2) * 1.6 * kMarker;
    return x(budget) + (at_the_same % 2 == 1 ? -away : away);
  }

  void draw_line(std::size_t line) {
    Polyline drawn{{}, color_of_series(line), 1.1, kNoColor};
    drawn.stroke.opacity = 0xa0;
    const auto finish = [&] {
      if (drawn.points.size() > 1) figure_.add(drawn, chart_.lines[line].name);
      drawn.points.clear();
    };
    for (std::size_t b = 0; b < chart_.budgets.size(); ++b) {
      const BudgetPoint& point = chart_.lines[line].points[b];
      if (point.outcome == BudgetOutcome::fits)
        drawn.points.push_back({place(line, b), y(point.seconds)});
      else
        finish();
    }
    finish();
  }

  // In steps: what a budget allows, a larger one does, too.
  void draw_front() {
    Polyline front{{}, palette::kText, 2.25, kNoColor};
    for (std::size_t b = chart_.budgets.size(); b-- > 0;)
      for (const BudgetLine& line : chart_.lines) {
        const BudgetPoint& point = line.points[b];
        if (!point.is_on_front) continue;
        if (!front.points.empty()) front.points.push_back({x(b), front.points.back().y});
        front.points.push_back({x(b), y(point.seconds)});
        break;  // others of this budget have the same time
      }
    if (front.points.empty()) return;
    front.points.push_back({area_.right(), front.points.back().y});
    figure_.add(front, "Pareto front");
  }

  static MarkerStyle style_of(const BudgetPoint& point) {
    return point.is_on_front ? MarkerStyle::edged : MarkerStyle::plain;
  }

  void draw_markers(std::size_t line) {
    for (std::size_t b = 0; b < chart_.budgets.size(); ++b) {
      const BudgetPoint& point = chart_.lines[line].points[b];
      if (point.outcome != BudgetOutcome::fits) continue;
      figure_.add(GroupBegin{hover(line, b)});
      draw_marker(figure_, {place(line, b), y(point.seconds)}, line, kMarker, style_of(point));
      figure_.add(GroupEnd{});
    }
  }

  std::string hover(std::size_t line, std::size_t budget) const {
    return fmt::format("{} within {}: {}", chart_.lines[line].name, chart_.budgets[budget].name,
                       chart_.lines[line].points[budget].detail);
  }

  void draw_where_nothing_fits() {
    for (std::size_t b = 0; b < chart_.budgets.size(); ++b) {
      const bool something = std::any_of(chart_.lines.begin(), chart_.lines.end(), [&](const BudgetLine& line) {
        return line.points[b].outcome == BudgetOutcome::fits;
      });
      if (!something)
        figure_.add(Text{{x(b) - 5, area_.top + area_.height / 2}, "nothing fits", kLabelSize, Anchor::middle,
                         palette::kLimit, true, 90});
    }
  }

  void draw_key_mark(Point at, std::size_t line, std::size_t budget) {
    const BudgetPoint& point = chart_.lines[line].points[budget];
    figure_.add(GroupBegin{hover(line, budget)});
    if (point.outcome == BudgetOutcome::fits)
      draw_marker(figure_, at, line, kMarker, style_of(point));
    else if (point.outcome == BudgetOutcome::does_not_fit)
      draw_cross(figure_, at, palette::kLimit);
    else
      figure_.add(Line{{at.x - 4, at.y}, {at.x + 4, at.y}, palette::kGray, 1.5});
    figure_.add(GroupEnd{});
  }

  void draw_key() {
    const double left = area_.right() + 18, right = figure_.width - kMargin;
    const auto columns = static_cast<double>(chart_.budgets.size());
    const double cell = std::min(kCell, (right - left) * 0.55 / columns);
    const double marks = right - cell * columns;
    double row = area_.top;
    figure_.add(Text{{left, row + kBudgetKeyHead - 10}, "policy, and each budget", kSmallSize, Anchor::start,
                     palette::kFaintText});
    const auto middle = [&](std::size_t b) { return marks + cell * (static_cast<double>(b) + 0.5); };
    for (std::size_t b = 0; b < chart_.budgets.size() && cell >= kSmallSize; ++b)
      figure_.add(Text{{middle(b) + 3.5, row + kBudgetKeyHead - 8},
                       fit_text(chart_.budgets[b].name, kBudgetKeyHead - 8, kSmallSize), kSmallSize, Anchor::start,
                       palette::kText, false, 90});
    row += kBudgetKeyHead;
    for (std::size_t line = 0; line < chart_.lines.size(); ++line, row += kBudgetKeyRow) {
      const std::string& name = chart_.lines[line].name;
      if (line % 2 == 0) figure_.add(Rectangle{left - 4, row - 4, right - left + 4, kBudgetKeyRow, palette::kBand});
      draw_marker(figure_, {left + 4, row + 4.5}, line, kMarker);
      figure_.add(Text{{left + 14, row + 8}, fit_text(name, marks - left - 18, kSmallSize), kSmallSize, Anchor::start,
                       palette::kText},
                  name);
      for (std::size_t b = 0; b < chart_.budgets.size(); ++b) draw_key_mark({middle(b), row + 4.5}, line, b);
    }
    draw_key_words({left + 4, row + 14});
  }

  void draw_key_words(Point at) {
    const auto word = [&](const char* text) {
      figure_.add(Text{{at.x + 9, at.y + 3.5}, text, kSmallSize, Anchor::start, palette::kFaintText});
      at.x += 24 + text_width(text, kSmallSize);
    };
    draw_cross(figure_, at, palette::kLimit);
    word("does not fit");
    figure_.add(Line{{at.x - 4, at.y}, {at.x + 4, at.y}, palette::kGray, 1.5});
    word("refused");
    figure_.add(Rectangle{at.x - 4, at.y - 4, 8, 8, palette::kBackground, palette::kText, 4});
    word("edged: on the Pareto front");
  }

  const BudgetTimeChart& chart_;
  Figure figure_;
  Area area_;
  Scale budget_;
  double time_low_ = 0, time_high_ = 1;
  bool is_log_ = false;
};

}  // namespace

Figure draw_budget_times(const BudgetTimeChart& chart) { return BudgetTimeDrawing(chart).draw(); }

}  // namespace memwall
