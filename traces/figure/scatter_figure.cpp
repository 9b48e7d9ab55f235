#include "traces/figure/scatter_figure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>

#include "traces/figure/palette.h"
#include "traces/figure/text_metrics.h"

namespace memwall {
namespace {

using namespace plot;

constexpr double kScatterKey = 270, kScatterHeight = 440, kListLine = 12, kListIndent = 22;

struct PlacedBox {
  double left = 0, top = 0, right = 0, bottom = 0;
  bool meets(const PlacedBox& o) const { return left < o.right && o.left < right && top < o.bottom && o.top < bottom; }
};

class ScatterDrawing {
 public:
  explicit ScatterDrawing(const ScatterChart& chart)
      : chart_(chart), front_(pareto_front(chart.points, chart.more_x_is_better, chart.more_y_is_better)) {
    words_.edged = !front_.empty();
    for (const std::size_t i : front_) {
      const ScatterPoint& point = chart.points[i];
      if (entries_.empty() || point.x != chart.points[entries_.back().first].x ||
          point.y != chart.points[entries_.back().first].y)
        entries_.push_back({i, 0});
      ++entries_.back().points;
    }
    for (const ScatterPoint& point : chart.points) words_.hollow |= !point.meets;
  }

  Figure draw() {
    figure_.width = kFigureWidth;
    figure_.title = chart_.title;
    const double y = draw_title(figure_, chart_.title, chart_.subtitle);
    const std::vector<std::string> named = chart_.series.size() > 1 ? chart_.series : std::vector<std::string>{};
    const double key = height_of_series_key(kScatterKey - 4, named, words_) + 34 + height_of_list();
    area_ = {kMargin + kLeftOfAxis, y + 8, kFigureWidth - 2 * kMargin - kLeftOfAxis - kScatterKey - 18,
             std::max(kScatterHeight, key)};
    lay_out();
    draw_stairs();
    draw_points();
    draw_front();
    draw_numbers();
    draw_key();
    figure_.height = area_.bottom() + kBelowAxis;
    return std::move(figure_);
  }

 private:
  static std::vector<std::string> lines_of(const ScatterPoint& point) {
    std::vector<std::string> lines = wrap_text(point.name, kScatterKey - kListIndent - 4, kSmallSize, false, 2);
    if (lines.empty()) lines.emplace_back();
    return lines;
  }
  double height_of_list() const {
    double height = 2 * kListLine;
    for (std::size_t n = 0; n < listed(); ++n)
      height += kListLine * static_cast<double>(lines_of(chart_.points[entries_[n].first]).size() + 1) + 6;
    return height;
  }

  // A place on the front: points that are alike stand there together.
  struct Entry {
    std::size_t first = 0, points = 0;
  };

  std::size_t listed() const { return std::min(entries_.size(), kMostListed); }
  Point place(const ScatterPoint& point) const { return {(*x_)(point.x), (*y_)(point.y)}; }

  void lay_out() {
    std::vector<double> xs, ys;
    for (const ScatterPoint& point : chart_.points) xs.push_back(point.x), ys.push_back(point.y);
    const auto with_remark = [](NumberAxis axis, bool more) {
      if (axis.remark.empty()) axis.remark = more ? "more is better" : "less is better";
      return axis;
    };
    x_.emplace(with_remark(chart_.x, chart_.more_x_is_better), xs, area_.left, area_.right());
    y_.emplace(with_remark(chart_.y, chart_.more_y_is_better), ys, area_.bottom(), area_.top);
    draw_bottom_axis(figure_, area_, x_->ticks(8), x_->label());
    draw_left_axis(figure_, area_, y_->ticks(9), y_->label());
    if (chart_.points.empty())
      figure_.add(Text{{area_.left + area_.width / 2, area_.top + area_.height / 2},
                       "no point has both values",
                       kLabelSize,
                       Anchor::middle,
                       palette::kFaintText});
  }

  std::string hover(const ScatterPoint& point) const {
    return fmt::format("{}: {}, {}", point.name, number_text(chart_.x.unit, point.x),
                       number_text(chart_.y.unit, point.y));
  }

  // What misses the conditions lies below.
  void draw_points() {
    std::set<std::tuple<long, long, std::size_t, bool>> drawn;
    const double size = chart_.points.size() > 1000 ? kMarker / 2 : kMarker;
    for (const bool meets : {false, true})
      for (const ScatterPoint& point : chart_.points) {
        if (point.meets != meets) continue;
        const Point at = place(point);
        if (!drawn.emplace(std::lround(2 * at.x), std::lround(2 * at.y), point.series, meets).second) continue;
        figure_.add(GroupBegin{hover(point)});
        draw_marker(figure_, at, point.series, size, meets ? MarkerStyle::plain : MarkerStyle::hollow);
        figure_.add(GroupEnd{});
      }
  }

  // A corner lies where both of its points' worse values meet: that much is reached there.
  void draw_stairs() {
    if (front_.empty()) return;
    Polyline stairs{{}, palette::kText, 1.5, kNoColor};
    const double worst_y = chart_.more_y_is_better ? area_.bottom() : area_.top;
    const double worst_x = chart_.more_x_is_better ? area_.left : area_.right();
    const Point first = place(chart_.points[front_.front()]), last = place(chart_.points[front_.back()]);
    stairs.points.push_back(chart_.more_x_is_better ? Point{worst_x, first.y} : Point{first.x, worst_y});
    for (const std::size_t i : front_) {
      const Point at = place(chart_.points[i]);
      const Point before = stairs.points.back();
      if (stairs.points.size() > 1)
        stairs.points.push_back(chart_.more_x_is_better ? Point{before.x, at.y} : Point{at.x, before.y});
      stairs.points.push_back(at);
    }
    stairs.points.push_back(chart_.more_x_is_better ? Point{last.x, worst_y} : Point{worst_x, last.y});
    figure_.add(stairs, "Pareto front");
  }

  void draw_front() {
    for (const std::size_t i : front_) {
      figure_.add(GroupBegin{hover(chart_.points[i])});
      draw_marker(figure_, place(chart_.points[i]), chart_.points[i].series, kMarker, MarkerStyle::edged);
      figure_.add(GroupEnd{});
    }
  }

  // Beside its point, where no other number and no point of the front stands.
  void draw_numbers() {
    std::vector<PlacedBox> taken;
    for (const std::size_t i : front_) {
      const Point at = place(chart_.points[i]);
      taken.push_back({at.x - 4.5, at.y - 4.5, at.x + 4.5, at.y + 4.5});
    }
    for (std::size_t n = 0; n < listed(); ++n) {
      const Point middle = place(chart_.points[entries_[n].first]);
      const std::string text = std::to_string(n + 1);
      const double half = text_width(text, kSmallSize, true) / 2 + 1;
      for (int step = 0; step < 40; ++step) {
        // Towards what is better first: nothing stands behind the front.
        const double turn = (step % 8) * std::numbers::pi / 4 + start_of_turn();
        const double far = 11 + 7 * (step / 8);
        const Point at{middle.x + far * std::cos(turn), middle.y - far * std::sin(turn)};
        const PlacedBox box{at.x - half, at.y - 6, at.x + half, at.y + 6};
        const bool inside = box.left >= area_.left && box.right <= area_.right() + 12 && box.top >= area_.top - 6 &&
                            box.bottom <= area_.bottom();
        if (!inside || std::ranges::any_of(taken, [&](const PlacedBox& o) { return o.meets(box); })) continue;
        figure_.add(Text{{at.x, at.y + 3.5}, text, kSmallSize, Anchor::middle, palette::kText, true});
        taken.push_back(box);
        break;
      }
    }
  }

  double start_of_turn() const {
    const double x = chart_.more_x_is_better ? 1 : -1, y = chart_.more_y_is_better ? 1 : -1;
    return std::atan2(y, x);
  }

  void draw_key() {
    const double left = area_.right() + 22, right = figure_.width - kMargin;
    const std::vector<std::string> names = chart_.series.size() > 1 ? chart_.series : std::vector<std::string>{};
    double row =
        draw_series_key(figure_, left, area_.top, right, names.empty() ? "" : chart_.series_name, names, words_);
    if (front_.empty()) return;
    row += 14;
    figure_.add(Text{{left, row}, "On the Pareto front", kLabelSize, Anchor::start, palette::kText, true});
    row += 16;
    for (std::size_t n = 0; n < listed(); ++n) {
      const ScatterPoint& point = chart_.points[entries_[n].first];
      figure_.add(GroupBegin{hover(point)});
      figure_.add(Text{{left + 14, row}, std::to_string(n + 1), kSmallSize, Anchor::end, palette::kText, true});
      for (const std::string& line : lines_of(point)) {
        figure_.add(Text{{left + kListIndent, row}, line, kSmallSize, Anchor::start, palette::kText});
        row += kListLine;
      }
      std::string values = number_text(chart_.x.unit, point.x) + ", " + number_text(chart_.y.unit, point.y);
      if (entries_[n].points > 1) values += fmt::format("; {} points alike", entries_[n].points);
      figure_.add(Text{{left + kListIndent, row},
                       fit_text(values, kScatterKey - kListIndent - 4, kSmallSize),
                       kSmallSize,
                       Anchor::start,
                       palette::kFaintText});
      figure_.add(GroupEnd{});
      row += kListLine + 6;
    }
    if (entries_.size() > listed())
      figure_.add(Text{{left + kListIndent, row},
                       fmt::format("and {} more", entries_.size() - listed()),
                       kSmallSize,
                       Anchor::start,
                       palette::kFaintText});
  }

  const ScatterChart& chart_;
  std::vector<std::size_t> front_;
  std::vector<Entry> entries_;
  MarkWords words_;
  Figure figure_;
  Area area_;
  std::optional<AxisLayout> x_, y_;
};

}  // namespace

std::vector<std::size_t> pareto_front(const std::vector<ScatterPoint>& points, bool more_x_is_better,
                                      bool more_y_is_better) {
  const auto cost_x = [&](std::size_t i) { return more_x_is_better ? -points[i].x : points[i].x; };
  const auto cost_y = [&](std::size_t i) { return more_y_is_better ? -points[i].y : points[i].y; };
  std::vector<std::size_t> order(points.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::erase_if(order, [&](std::size_t i) { return !points[i].meets; });
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return std::pair(cost_x(i), cost_y(i)); });
  std::vector<std::size_t> front;
  for (const std::size_t i : order) {
    const bool is_twin =
        !front.empty() && points[i].x == points[front.back()].x && points[i].y == points[front.back()].y;
    if (front.empty() || is_twin || cost_y(i) < cost_y(front.back())) front.push_back(i);
  }
  if (more_x_is_better) std::ranges::reverse(front);
  return front;
}

Figure draw_scatter(const ScatterChart& chart) { return ScatterDrawing(chart).draw(); }

}  // namespace memwall
