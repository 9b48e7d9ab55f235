#include "gui/drawing/canvas_drawing.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "gui/drawing/op_marks.h"
#include "gui/drawing/row_drawing.h"
#include "gui/drawing/row_titles.h"
#include "gui/drawing/ruler.h"
#include "sim/error.h"
#include "traces/figure/palette.h"
#include "traces/figure/text_metrics.h"

namespace memwall::gui {
namespace {

struct RowFunctions {
  void (*draw)(const RowPlace&, CanvasFrame&);
  void (*hit)(const RowPlace&, double, double, Hit&);
};

RowFunctions functions_of(RowKind kind) {
  switch (kind) {
    case RowKind::lane:
      return {draw_lane_row, hit_lane_row};
    case RowKind::stall:
      return {draw_stall_row, hit_stall_row};
    case RowKind::occupancy:
      return {draw_occupancy_row, hit_occupancy_row};
    case RowKind::link:
      return {draw_link_row, hit_link_row};
    case RowKind::residency:
      return {draw_residency_row, hit_residency_row};
    case RowKind::classes:
      return {draw_classes_row, hit_classes_row};
    case RowKind::difference:
      break;
  }
  return {draw_difference_row, hit_difference_row};
}

RowPlace place_of(const CanvasState& state, const Theme& theme, const RowList::Place& place) {
  return {state,
          theme,
          state.rows.rows()[place.row],
          kTitleWidth,
          kRulerHeight + place.top - state.scroll,
          state.viewport.width(),
          place.height,
          place.stands_for_rank};
}

// What is dragged, clicked and marked: over all rows.
void draw_marks(const CanvasState& state, const Theme& theme, double height, Figure& figure) {
  const double right = kTitleWidth + state.viewport.width();
  const auto x = [&](Time time) { return kTitleWidth + state.viewport.x(time); };
  const auto shade = [&](TimeRange range, Color color, std::uint8_t opacity) {
    const double from = std::max(kTitleWidth, x(range.begin)), to = std::min(right, x(range.end));
    color.opacity = opacity;
    if (to > from) figure.add(Rectangle{from, kRulerHeight, to - from, height - kRulerHeight, color});
  };
  const auto line = [&](Time time, Color color, bool dashed) {
    const double at = std::round(x(time)) + 0.5;
    if (at >= kTitleWidth && at <= right) figure.add(Line{{at, kRulerHeight}, {at, height}, color, 1, dashed});
  };
  for (const Bookmark& mark : state.bookmarks) {
    if (mark.range.length().count() > 0) shade(mark.range, theme.mark, 36);
    line(mark.range.begin, theme.mark, false);
    if (mark.range.length().count() > 0) line(mark.range.end, theme.mark, false);
  }
  if (const auto& range = state.selection.range) {
    shade(*range, theme.cursor, 40);
    line(range->begin, theme.cursor, false);
    line(range->end, theme.cursor, false);
  }
  if (const auto& cursor = state.selection.cursor) line(*cursor, theme.cursor, false);
}

// The flag of a bookmark in the ruler.
struct BookmarkFlag {
  static constexpr double kSize = 9.5, kMostWidth = 120, kTop = 1, kHeight = 12;
  double x = 0, width = 0;  // of the canvas
  std::string label;
  BookmarkFlag(const CanvasState& state, const Bookmark& mark)
      : x(std::round(kTitleWidth + state.viewport.x(mark.range.begin))),
        label(fit_text(mark.label.empty() ? "mark" : mark.label, kMostWidth, kSize)) {
    width = text_width(label, kSize) + 8;
  }
};

void draw_bookmark_labels(const CanvasState& state, const Theme& theme, double width, Figure& figure) {
  for (const Bookmark& mark : state.bookmarks) {
    const BookmarkFlag flag(state, mark);
    if (flag.x < kTitleWidth || flag.x > width) continue;
    figure.add(Rectangle{flag.x, BookmarkFlag::kTop, flag.width, BookmarkFlag::kHeight, theme.mark, kNoColor, 2});
    figure.add(Text{{flag.x + 4, 10.5}, flag.label, BookmarkFlag::kSize, Anchor::start, palette::text_on(theme.mark)});
  }
}

// Of flags that overlap the last one, which is on top.
std::optional<std::size_t> bookmark_at(const CanvasState& state, double x, double y) {
  if (x < kTitleWidth || y < BookmarkFlag::kTop || y >= BookmarkFlag::kTop + BookmarkFlag::kHeight) return std::nullopt;
  for (std::size_t i = state.bookmarks.size(); i-- > 0;) {
    const BookmarkFlag flag(state, state.bookmarks[i]);
    if (flag.x >= kTitleWidth && flag.x <= x && x < flag.x + flag.width) return i;
  }
  return std::nullopt;
}

// What cannot be read leaves its row empty, and is said.
void draw_row(const RowPlace& place, CanvasFrame& frame) {
  try {
    functions_of(place.row.kind).draw(place, frame);
  } catch (const InputError& error) {
    frame.problem = error.what();
  }
  draw_row_title(place, frame.figure);
}

}  // namespace

CanvasFrame draw_canvas(const CanvasState& state, const Theme& theme, double width, double height) {
  assert(width > kTitleWidth && height > kRulerHeight);
  CanvasFrame frame;
  Figure& figure = frame.figure;
  figure.width = width;
  figure.height = height;
  figure.items.reserve(4096);
  figure.add(Rectangle{0, 0, width, height, theme.background});
  draw_title_column(theme, height, figure);
  draw_grid(state, theme, kRulerHeight, height, figure);
  std::vector<RowPlace> rows;
  for (const RowList::Place& at : state.rows.places()) {
    const RowPlace place = place_of(state, theme, at);
    const double above = at.begins_group ? RowList::kGroupHeight : 0;
    if (place.top + place.height <= kRulerHeight || place.top - above >= height) continue;
    if (at.begins_group) draw_group_line(place, width, figure);
    draw_row(place, frame);
    rows.push_back(place);
  }
  draw_step_lines(state, theme, kRulerHeight, height, figure);
  draw_op_marks(rows, frame);
  draw_marks(state, theme, height, figure);
  draw_ruler(state, theme, width, figure);
  draw_found_ticks(state, theme, figure);
  draw_bookmark_labels(state, theme, width, figure);
  std::sort(frame.missing.begin(), frame.missing.end());
  frame.missing.erase(std::unique(frame.missing.begin(), frame.missing.end()), frame.missing.end());
  return frame;
}

Hit hit_test(const CanvasState& state, double x, double y) {
  Hit hit;
  const auto at = y < kRulerHeight ? std::nullopt : state.rows.at(y - kRulerHeight + state.scroll);
  hit.on_title = x < kTitleWidth;
  hit.time = state.viewport.time(x - kTitleWidth);
  hit.bookmark = bookmark_at(state, x, y);
  if (hit.bookmark) hit.text = state.bookmarks[*hit.bookmark].label;
  if (!at) return hit;
  hit.row = at->row;
  const Theme theme = light_theme();
  const RowPlace place = place_of(state, theme, *at);
  if (hit.on_title) {
    hit.text = whole_title(place);
    return hit;
  }
  hit.time -= place.shift();
  try {
    functions_of(place.row.kind).hit(place, x, y, hit);
  } catch (const InputError& error) {
    hit.text = error.what();
  }
  return hit;
}

}  // namespace memwall::gui
