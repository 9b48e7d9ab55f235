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

}  // namespace

TimelineDrawing::TimelineDrawing(const Timeline& timeline) : timeline_(timeline), lanes_(timeline.lanes.size()) {
  place_columns();
}

// What is left and right needs the lanes' names only; what is above and below waits for the legend.
void TimelineDrawing::place_columns() {
  double labels = 40;
  for (const TimelineLane& lane : timeline_.lanes) labels = std::max(labels, text_width(lane.name, kSmallSize));
  const double left = kMargin + std::min(labels, kMostLaneLabel) + 8;
  area_ = {left, 0, kFigureWidth - kMargin - left - 8, 0};
}

void TimelineDrawing::add(TimelineSpan span) {
  assert(span.begin <= span.end);
  if (span.kind >= occurs_.size()) occurs_.resize(span.kind + std::size_t{1});
  occurs_[span.kind] = true;
  if (span.end < timeline_.begin || span.begin > timeline_.end) return;
  Lane& lane = lanes_[span.lane];
  const auto [from, to] = extent(span);
  if (to - from >= kVisible) {
    lane.spans.push_back(std::move(span));
    return;
  }
  const auto at = static_cast<long>((from - area_.left) / kColumn);
  if (lane.columns.empty() || lane.columns.back().at != at) lane.columns.push_back({at, {}, 0});
  Column& column = lane.columns.back();
  column.points[span.kind] += std::max(to - from, 1e-6);
  ++column.spans;
}

Figure TimelineDrawing::draw() {
  figure_.width = kFigureWidth;
  figure_.title = timeline_.title;
  double y = draw_title(figure_, timeline_.title, timeline_.subtitle);
  y = draw_legend(figure_, kMargin, y, kFigureWidth - kMargin, legend());
  place_lanes(y + (timeline_.marks.empty() ? 0 : 14));
  figure_.height = area_.bottom() + 42;
  draw_lanes();
  draw_time_axis(figure_, area_, timeline_.begin, timeline_.end);
  for (const Lane& lane : lanes_) {
    draw_columns(lane);
    for (const TimelineSpan& span : lane.spans) draw_span(span, lane);
  }
  draw_marks();
  return std::move(figure_);
}

std::vector<LegendEntry> TimelineDrawing::legend() const {
  std::vector<LegendEntry> entries;
  for (std::size_t i = 0; i < occurs_.size(); ++i)
    if (occurs_[i]) entries.push_back({timeline_.kinds[i], palette::color_of(timeline_.kinds[i])});
  return entries;
}

void TimelineDrawing::place_lanes(double top) {
  double y = top;
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    lanes_[i].top = y;
    lanes_[i].height = timeline_.lanes[i].thin ? kThinLane : kLane;
    y += lanes_[i].height + kLaneGap;
  }
  area_.top = top;
  area_.height = std::max(y - top, kLane);
}

void TimelineDrawing::draw_lanes() {
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    const Lane& lane = lanes_[i];
    const std::string& name = timeline_.lanes[i].name;
    figure_.add(Rectangle{area_.left, lane.top, area_.width, lane.height, palette::kBand});
    figure_.add(Text{{area_.left - 8, lane.top + lane.height / 2 + 3.5},
                     fit_text(name, area_.left - 8 - kMargin, kSmallSize),
                     kSmallSize,
                     Anchor::end,
                     palette::kText},
                name);
  }
}

// Neighbouring columns of one colour become one rectangle.
void TimelineDrawing::draw_columns(const Lane& lane) {
  long first = 0, next = 0;
  std::uint16_t kind = 0;
  std::size_t merged = 0;
  const auto flush = [&] {
    if (merged == 0) return;
    figure_.add(Rectangle{area_.left + static_cast<double>(first) * kColumn, lane.top,
                          std::min(static_cast<double>(next - first) * kColumn,
                                   area_.width - static_cast<double>(first) * kColumn),
                          lane.height, palette::color_of(timeline_.kinds[kind])},
                fmt::format("{} short spans, mostly {}", merged, timeline_.kinds[kind]));
    merged = 0;
  };
  for (const Column& column : lane.columns) {
    const auto longest = std::max_element(column.points.begin(), column.points.end(),
                                          [](const auto& a, const auto& b) { return a.second < b.second; });
    if (merged == 0 || column.at != next || longest->first != kind) {
      flush();
      first = column.at;
      kind = longest->first;
    }
    next = column.at + 1;
    merged += column.spans;
  }
  flush();
}

void TimelineDrawing::draw_span(const TimelineSpan& span, const Lane& lane) {
  const auto [from, to] = extent(span);
  const Color color = palette::color_of(timeline_.kinds[span.kind]);
  figure_.add(GroupBegin{fmt::format("{}\n{}: {} from {}", span.label, timeline_.kinds[span.kind],
                                     format_time(span.end - span.begin), format_time(span.begin))});
  figure_.add(
      Rectangle{from, lane.top, to - from, lane.height, color, to - from > 3 ? palette::kBackground : kNoColor});
  if (lane.height >= kLane) {
    const std::string text = to - from < kLabelled ? "" : fit_text(span.label, to - from - 6, kSmallSize);
    if (!text.empty())
      figure_.add(
          Text{{from + 3, lane.top + lane.height / 2 + 3.5}, text, kSmallSize, Anchor::start, palette::text_on(color)});
  }
  figure_.add(GroupEnd{});
}

// Left and right end within the window.
std::pair<double, double> TimelineDrawing::extent(const TimelineSpan& span) const {
  const Scale x = time_scale(area_, timeline_.begin, timeline_.end);
  return {std::clamp(x(to_seconds(span.begin)), area_.left, area_.right()),
          std::clamp(x(to_seconds(span.end)), area_.left, area_.right())};
}

// Labels end before the next mark; what finds no room there is left to the hover title.
void TimelineDrawing::draw_marks() {
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
    if (!text.empty()) figure_.add(Text{{x + 3, area_.top - 4}, text, kSmallSize, Anchor::start, palette::kFaintText});
    figure_.add(GroupEnd{});
  }
}

Figure draw_timeline(const Timeline& timeline) {
  std::vector<const TimelineSpan*> spans;
  for (const TimelineSpan& span : timeline.spans) spans.push_back(&span);
  std::stable_sort(spans.begin(), spans.end(),
                   [](const TimelineSpan* a, const TimelineSpan* b) { return a->begin < b->begin; });
  TimelineDrawing drawing(timeline);
  for (const TimelineSpan* span : spans) drawing.add(*span);
  return drawing.draw();
}

}  // namespace memwall
