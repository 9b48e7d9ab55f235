#include "traces/figure/timeline_figure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <map>

#include "traces/figure/palette.h"
#include "traces/figure/plot.h"
#include "traces/figure/text_metrics.h"

namespace memwall {
namespace {

using namespace plot;

constexpr double kLane = 24, kThinLane = 14, kLaneGap = 5;
constexpr double kVisible = 0.75;  // a span narrower than this, in points, is merged with its neighbours
constexpr double kColumn = 0.5;    // into columns of this width
constexpr double kMostLaneLabel = 190;
constexpr double kLabelled = 48;  // a narrower span has no label: half a word says nothing

class TimelineDrawing {
 public:
  explicit TimelineDrawing(const Timeline& timeline) : timeline_(timeline) {}

  Figure draw() {
    figure_.width = kFigureWidth;
    figure_.title = timeline_.title;
    double y = draw_title(figure_, timeline_.title, timeline_.subtitle);
    y = draw_legend(figure_, kMargin, y, kFigureWidth - kMargin, legend());
    place_lanes(y + (timeline_.marks.empty() ? 0 : 14));
    figure_.height = area_.bottom() + 42;
    draw_lanes();
    draw_time_axis(figure_, area_, timeline_.begin, timeline_.end);
    draw_spans();
    draw_marks();
    return std::move(figure_);
  }

 private:
  struct Row {
    double top = 0, height = 0;
  };

  std::vector<LegendEntry> legend() const {
    std::vector<bool> occurs(timeline_.kinds.size(), false);
    for (const TimelineSpan& span : timeline_.spans) occurs[span.kind] = true;
    std::vector<LegendEntry> entries;
    for (std::size_t i = 0; i < occurs.size(); ++i)
      if (occurs[i]) entries.push_back({timeline_.kinds[i], palette::color_of(timeline_.kinds[i])});
    return entries;
  }

  void place_lanes(double top) {
    double labels = 40;
    for (const TimelineLane& lane : timeline_.lanes) labels = std::max(labels, text_width(lane.name, kSmallSize));
    labels = std::min(labels, kMostLaneLabel);
    double y = top;
    for (const TimelineLane& lane : timeline_.lanes) {
      rows_.push_back({y, lane.thin ? kThinLane : kLane});
      y += rows_.back().height + kLaneGap;
    }
    const double left = kMargin + labels + 8;
    area_ = {left, top, kFigureWidth - kMargin - left - 8, std::max(y - top, kLane)};
  }

  void draw_lanes() {
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const Row& row = rows_[i];
      const std::string& name = timeline_.lanes[i].name;
      figure_.add(Rectangle{area_.left, row.top, area_.width, row.height, palette::kBand});
      figure_.add(Text{{area_.left - 8, row.top + row.height / 2 + 3.5},
                       fit_text(name, area_.left - 8 - kMargin, kSmallSize),
                       kSmallSize,
                       Anchor::end,
                       palette::kText},
                  name);
    }
  }

  void draw_spans() {
    std::vector<std::vector<const TimelineSpan*>> by_lane(timeline_.lanes.size());
    for (const TimelineSpan& span : timeline_.spans) {
      assert(span.begin <= span.end);
      if (span.end >= timeline_.begin && span.begin <= timeline_.end) by_lane[span.lane].push_back(&span);
    }
    for (std::size_t lane = 0; lane < by_lane.size(); ++lane) {
      auto& spans = by_lane[lane];
      std::stable_sort(spans.begin(), spans.end(),
                       [](const TimelineSpan* a, const TimelineSpan* b) { return a->begin < b->begin; });
      draw_lane(spans, rows_[lane]);
    }
  }

  // How long each kind lasts within a column.
  struct Column {
    std::map<std::uint16_t, double> points;
    std::size_t spans = 0;
  };

  void draw_lane(const std::vector<const TimelineSpan*>& spans, const Row& row) {
    std::map<long, Column> columns;  // ordered: drawn from left to right
    for (const TimelineSpan* span : spans) {
      const auto [from, to] = extent(*span);
      if (to - from >= kVisible) continue;
      Column& column = columns[static_cast<long>((from - area_.left) / kColumn)];
      column.points[span->kind] += std::max(to - from, 1e-6);
      ++column.spans;
    }
    draw_columns(columns, row);
    for (const TimelineSpan* span : spans) draw_span(*span, row);
  }

  // Neighbouring columns of one colour become one rectangle.
  void draw_columns(const std::map<long, Column>& columns, const Row& row) {
    long first = 0, next = 0;
    std::uint16_t kind = 0;
    std::size_t merged = 0;
    const auto flush = [&] {
      if (merged == 0) return;
      figure_.add(Rectangle{area_.left + static_cast<double>(first) * kColumn, row.top,
                            std::min(static_cast<double>(next - first) * kColumn,
                                     area_.width - static_cast<double>(first) * kColumn),
                            row.height, palette::color_of(timeline_.kinds[kind])},
                  fmt::format("{} short spans, mostly {}", merged, timeline_.kinds[kind]));
      merged = 0;
    };
    for (const auto& [at, column] : columns) {
      const auto longest = std::max_element(column.points.begin(), column.points.end(),
                                            [](const auto& a, const auto& b) { return a.second < b.second; });
      if (merged == 0 || at != next || longest->first != kind) {
        flush();
        first = at;
        kind = longest->first;
      }
      next = at + 1;
      merged += column.spans;
    }
    flush();
  }

  void draw_span(const TimelineSpan& span, const Row& row) {
    const auto [from, to] = extent(span);
    if (to - from < kVisible) return;
    const Color color = palette::color_of(timeline_.kinds[span.kind]);
    figure_.add(GroupBegin{fmt::format("{}\n{}: {} from {}", span.label, timeline_.kinds[span.kind],
                                       format_time(span.end - span.begin), format_time(span.begin))});
    figure_.add(
        Rectangle{from, row.top, to - from, row.height, color, to - from > 3 ? palette::kBackground : kNoColor});
    if (row.height >= kLane) {
      const std::string text = to - from < kLabelled ? "" : fit_text(span.label, to - from - 6, kSmallSize);
      if (!text.empty())
        figure_.add(
            Text{{from + 3, row.top + row.height / 2 + 3.5}, text, kSmallSize, Anchor::start, palette::text_on(color)});
    }
    figure_.add(GroupEnd{});
  }

  // Left and right end within the window.
  std::pair<double, double> extent(const TimelineSpan& span) const {
    const Scale x = time_scale(area_, timeline_.begin, timeline_.end);
    return {std::clamp(x(to_seconds(span.begin)), area_.left, area_.right()),
            std::clamp(x(to_seconds(span.end)), area_.left, area_.right())};
  }

  // Labels end before the next mark; what finds no room there is left to the hover title.
  void draw_marks() {
    std::vector<const TimelineMark*> marks;
    for (const TimelineMark& mark : timeline_.marks)
      if (mark.time >= timeline_.begin && mark.time <= timeline_.end) marks.push_back(&mark);
    std::stable_sort(marks.begin(), marks.end(),
                     [](const TimelineMark* a, const TimelineMark* b) { return a->time < b->time; });
    const Scale scale = time_scale(area_, timeline_.begin, timeline_.end);
    for (std::size_t i = 0; i < marks.size(); ++i) {
      const double x = scale(to_seconds(marks[i]->time));
      const double next = i + 1 < marks.size() ? scale(to_seconds(marks[i + 1]->time)) : figure_.width - 4;
      figure_.add(GroupBegin{marks[i]->label + " at " + format_time(marks[i]->time)});
      figure_.add(Line{{x, area_.top - 4}, {x, area_.bottom()}, palette::kText, 0.75, true});
      const std::string text = fit_text(marks[i]->label, next - x - 6, kSmallSize);
      if (!text.empty())
        figure_.add(Text{{x + 3, area_.top - 4}, text, kSmallSize, Anchor::start, palette::kFaintText});
      figure_.add(GroupEnd{});
    }
  }

  const Timeline& timeline_;
  Figure figure_;
  Area area_;
  std::vector<Row> rows_;
};

}  // namespace

Figure draw_timeline(const Timeline& timeline) { return TimelineDrawing(timeline).draw(); }

}  // namespace memwall
