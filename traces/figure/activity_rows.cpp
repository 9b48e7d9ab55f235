#include "traces/figure/activity_rows.h"

#include <fmt/format.h>

#include <algorithm>

#include "traces/figure/palette.h"

namespace memwall::plot {
namespace {

constexpr double kLeastGap = 0.4;  // points between spans that are drawn apart

// Spans of one state that stand in one place.
struct DrawnSpan {
  double from = 0, to = 0;
  std::size_t count = 0;
  Bytes bytes = 0;
  const ActivitySpan* only = nullptr;
};

std::vector<DrawnSpan> drawn_spans(const ActivityRow& row, ActivityState state, const Area& area, const Scale& scale) {
  std::vector<const ActivitySpan*> spans;
  for (const ActivitySpan& span : row.spans)
    if (span.state == state) spans.push_back(&span);
  std::stable_sort(spans.begin(), spans.end(),
                   [](const ActivitySpan* a, const ActivitySpan* b) { return a->begin < b->begin; });
  std::vector<DrawnSpan> drawn;
  for (const ActivitySpan* span : spans) {
    const double from = std::max(scale(to_seconds(span->begin)), area.left);
    const double to = std::min(std::max(scale(to_seconds(span->end)), from + 0.5), area.right());
    if (from >= area.right() || to <= area.left) continue;
    if (drawn.empty() || from > drawn.back().to + kLeastGap) drawn.push_back({from, to, 0, 0, span});
    DrawnSpan& last = drawn.back();
    last.to = std::max(last.to, to);
    last.bytes += span->bytes;
    if (++last.count > 1) last.only = nullptr;
  }
  return drawn;
}

Color color_of_row(const ActivityRow& row, ActivityState state) {
  if (state == ActivityState::waits) return palette::kLightGray;
  return state == ActivityState::late ? palette::kLimit : row.color;
}

const char* word_of_state(ActivityState state) {
  if (state == ActivityState::waits) return " and waiting";
  return state == ActivityState::late ? " late" : "";
}

std::string text_of_span(const ActivityRow& row, const DrawnSpan& span, ActivityState state) {
  if (span.only != nullptr) return span.only->text;
  return fmt::format("{} {}{}{}", span.count, row.verb, word_of_state(state),
                     span.bytes > 0 ? ", " + format_bytes(span.bytes) : "");
}

}  // namespace

void draw_activity(Figure& figure, const Area& area, double top, const std::vector<ActivityRow>& rows, Time begin,
                   Time end) {
  const Scale scale = time_scale(area, begin, end);
  top += kAboveActivity;
  for (const ActivityRow& row : rows) {
    figure.add(Rectangle{area.left, top, area.width, kActivityRow - 2, palette::kBand});
    figure.add(
        Text{{area.left - 6, top + kActivityRow - 3.5}, row.name, kSmallSize - 1, Anchor::end, palette::kFaintText});
    for (const ActivityState state : {ActivityState::waits, ActivityState::works, ActivityState::late})
      for (const DrawnSpan& span : drawn_spans(row, state, area, scale))
        figure.add(Rectangle{span.from, top, span.to - span.from, kActivityRow - 2, color_of_row(row, state)},
                   text_of_span(row, span, state));
    top += kActivityRow;
  }
}

}  // namespace memwall::plot
