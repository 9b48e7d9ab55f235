#include "traces/figure/line_figure.h"

#include <algorithm>
#include <optional>
#include <set>

#include "traces/figure/name_axis.h"
#include "traces/figure/palette.h"
#include "traces/figure/text_metrics.h"

namespace memwall {
namespace {

using namespace plot;

constexpr double kLineKey = 236, kLineHeight = 400, kFailedRow = 11;
constexpr std::size_t kMostValueTicks = 14;  // with more values of x, ticks stand at round numbers
constexpr std::size_t kMostFailedRows = 12;  // more series share the last
constexpr std::size_t kMostMarked = 48;      // with more values of x, markers would hide the lines
constexpr double kBetweenPlainMarkers = 90, kBetweenMarkers = 5;

class LineDrawing {
 public:
  explicit LineDrawing(const LineChart& chart) : chart_(chart) {
    for (const LineSeries& one : chart.series) {
      series_.push_back(one.points);
      std::ranges::stable_sort(series_.back(), {}, &LinePoint::x);
    }
  }

  Figure draw() {
    figure_.width = kFigureWidth;
    figure_.title = chart_.title;
    const double y = draw_title(figure_, chart_.title, chart_.subtitle);
    read_points();
    const bool has_key = chart_.series.size() > 1 || words_.hollow || words_.crosses;
    area_ = {kMargin + kLeftOfAxis, y + 8, kFigureWidth - 2 * kMargin - kLeftOfAxis - (has_key ? kLineKey + 18 : 8),
             std::max(kLineHeight, height_of_series_key(kLineKey, names(), words_))};
    lay_out();
    for (std::size_t i = 0; i < series_.size(); ++i) draw_joined(i);
    for (std::size_t i = 0; i < series_.size(); ++i) draw_points(i);
    if (numbers_.empty()) say_that_nothing_is_there();
    if (has_key)
      draw_series_key(figure_, area_.right() + 18, area_.top, figure_.width - kMargin, chart_.series_name, names(),
                      words_);
    figure_.height = area_.bottom() + below_;
    return std::move(figure_);
  }

 private:
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const LineSeries& one : chart_.series) all.push_back(one.name);
    return all;
  }

  void read_points() {
    for (std::size_t i = 0; i < series_.size(); ++i)
      for (const LinePoint& point : series_[i]) {
        places_.insert(point.x);
        if (point.state == PointState::failed) {
          words_.crosses = true;
          if (failed_.empty() || failed_.back() != i) failed_.push_back(i);
        } else {
          numbers_.push_back(point.y);
          words_.hollow |= point.state == PointState::misses;
        }
      }
  }

  void lay_out() {
    const double rows = kFailedRow * static_cast<double>(std::min(failed_.size(), kMostFailedRows));
    y_.emplace(chart_.y, numbers_, area_.bottom() - rows, area_.top);
    draw_left_axis(figure_, area_, y_->ticks(9), y_->label());
    if (chart_.categories.empty())
      lay_out_numbers();
    else
      lay_out_categories();
  }

  void lay_out_numbers() {
    const std::vector<double> values(places_.begin(), places_.end());
    NumberAxis axis = chart_.x;
    axis.begins_at_zero = false;
    if (axis.scaling == AxisScaling::automatic)
      axis.scaling = stand_by_factors(values) ? AxisScaling::logarithmic : AxisScaling::linear;
    x_.emplace(axis, values, area_.left, area_.right());
    const bool few = !values.empty() && values.size() <= kMostValueTicks;
    const int most = std::max(3, static_cast<int>(area_.width / 70));
    draw_bottom_axis(figure_, area_, few ? x_->ticks_at(values) : x_->ticks(most), x_->label());
  }

  void lay_out_categories() {
    std::vector<AxisTick> names;
    for (std::size_t i = 0; i < chart_.categories.size(); ++i)
      names.push_back({category_place(static_cast<double>(i)), chart_.categories[i]});
    below_ = draw_name_axis(figure_, area_, names, chart_.x.name, true);
  }

  double category_place(double index) const {
    return area_.left + area_.width * (index + 0.5) / static_cast<double>(chart_.categories.size());
  }
  double x(const LinePoint& point) const { return x_ ? (*x_)(point.x) : category_place(point.x); }

  void draw_joined(std::size_t series) {
    Polyline line{{}, color_of_series(series), 1.5, kNoColor};
    const LinePoint* last = nullptr;
    const auto finish = [&] {
      if (line.points.size() > 1) figure_.add(line, chart_.series[series].name);
      if (line.points.size() == 1) alone_.insert(last);
      line.points.clear();
    };
    for (const LinePoint& point : series_[series]) {
      if (point.state == PointState::failed) {
        finish();
      } else {
        line.points.push_back({x(point), (*y_)(point.y)});
        last = &point;
      }
    }
    finish();
  }

  // Of many points some, so that lines of one colour are told apart; more of those that say something; and each that
  // stands alone.
  void draw_points(std::size_t series) {
    const bool are_many = places_.size() > kMostMarked;
    double free_from = -1;
    std::optional<PointState> before;
    for (const LinePoint& point : series_[series]) {
      const bool failed = point.state == PointState::failed;
      const Point at{x(point), failed ? failed_row(series) : (*y_)(point.y)};
      if (are_many && at.x < free_from && point.state == before && !alone_.contains(&point)) continue;
      before = point.state;
      free_from = at.x + (point.state == PointState::meets ? kBetweenPlainMarkers : kBetweenMarkers);
      figure_.add(GroupBegin{chart_.series[series].name + (point.detail.empty() ? "" : ": ") + point.detail});
      if (failed)
        draw_cross(figure_, at, color_of_series(series));
      else
        draw_marker(figure_, at, series, kMarker,
                    point.state == PointState::misses ? MarkerStyle::hollow : MarkerStyle::plain);
      figure_.add(GroupEnd{});
    }
  }

  double failed_row(std::size_t series) const {
    const auto row = static_cast<std::size_t>(std::ranges::find(failed_, series) - failed_.begin());
    const std::size_t last = std::min(failed_.size(), kMostFailedRows) - 1;
    return area_.bottom() - kFailedRow * (static_cast<double>(last - std::min(row, last)) + 0.5);
  }

  void say_that_nothing_is_there() {
    figure_.add(Text{{area_.left + area_.width / 2, area_.top + area_.height / 2},
                     "no point has a value",
                     kLabelSize,
                     Anchor::middle,
                     palette::kFaintText});
  }

  const LineChart& chart_;
  std::vector<std::vector<LinePoint>> series_;  // in the order of x
  std::set<double> places_;                     // all x
  std::vector<double> numbers_;                 // all y
  std::vector<std::size_t> failed_;             // series with failed points
  std::set<const LinePoint*> alone_;            // of `series_`: not joined to another
  MarkWords words_;
  Figure figure_;
  Area area_;
  std::optional<AxisLayout> x_, y_;
  double below_ = kBelowAxis;  // what the lower axis takes
};

}  // namespace

Figure draw_lines(const LineChart& chart) { return LineDrawing(chart).draw(); }

}  // namespace memwall
