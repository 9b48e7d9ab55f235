#include "gui/drawing/row_titles.h"

#include <algorithm>
#include <utility>

#include "gui/drawing/link_window.h"
#include "gui/model/time_sentence.h"
#include "traces/figure/text_metrics.h"

namespace memwall::gui {
namespace {

constexpr double kIndent = 12;
constexpr double kFoldWidth = 18;  // of the mark that says whether a rank is folded

// A triangle that points down to what is unfolded below it, or to the right.
void draw_fold_mark(double middle, bool folded, const Theme& theme, Figure& figure) {
  constexpr double kLeft = 6, kLong = 8, kShort = 5;
  Polyline mark;
  mark.fill = theme.faint_text;
  if (folded)
    mark.points = {{kLeft + 1, middle - kLong / 2}, {kLeft + 1 + kShort, middle}, {kLeft + 1, middle + kLong / 2}};
  else
    mark.points = {{kLeft, middle - kShort / 2},
                   {kLeft + kLong, middle - kShort / 2},
                   {kLeft + kLong / 2, middle + kShort / 2}};
  figure.add(std::move(mark));
}

void write_title(const std::string& text, double left, double base, double size, Color color, Figure& figure) {
  figure.add(Text{{left, base}, fit_text(text, kTitleWidth - left - 8, size), size, Anchor::start, color});
}

// The line above says whose rows of a rank these are: "stream 7 (compute), rank 2" is "stream 7 (compute)" below it.
std::string title_of(const RowPlace& place) {
  std::string title = place.row.title;
  if (!place.row.rank || !place.state.rows.filter().empty()) return title;
  const std::string rank =
      " rank " + std::to_string(place.run().outline().run.trace->rank_table[*place.row.rank].number);
  for (const std::string& end : {"," + rank, rank})
    if (title.ends_with(end)) return title.substr(0, title.size() - end.size());
  return title;
}

// What a row says of itself below its title, where there is room for two lines.
std::string note_of(const RowPlace& place) {
  if (place.row.kind == RowKind::link) return link_note(place);
  if (place.row.kind == RowKind::occupancy)
    return place.state.clock == MemoryClock::device ? "holds data, by the device's clock"
                                                    : "by the allocator's (host) clock";
  // The line of a rank says it already.
  if (place.row.kind == RowKind::classes && !place.row.rank) return rank_times(place.run(), place.row.index);
  return "";
}

void draw_folded_title(const RowPlace& place, Figure& figure) {
  const Theme& theme = place.theme;
  draw_fold_mark(place.top + place.height / 2, true, theme, figure);
  std::string title = rank_title(place.run(), *place.row.rank);
  if (place.state.runs.size() > 1) title = place.run().title() + ": " + title;
  const std::string times = rank_times(place.run(), *place.row.rank);
  const double middle = times.empty() ? place.top + place.height / 2 : place.top + 9;
  write_title(title, kFoldWidth, middle + theme.font_size * 0.36, theme.font_size, theme.text, figure);
  if (!times.empty()) write_title(times, kFoldWidth, middle + 17, kSmallText, theme.faint_text, figure);
}

}  // namespace

void draw_title_column(const Theme& theme, double height, Figure& figure) {
  figure.add(Rectangle{0, 0, kTitleWidth, height, theme.band});
  figure.add(Line{{kTitleWidth - 0.5, 0}, {kTitleWidth - 0.5, height}, theme.border});
}

void draw_group_line(const RowPlace& place, double width, Figure& figure) {
  const Theme& theme = place.theme;
  const double top = place.top - RowList::kGroupHeight;
  const bool of_rank = place.row.rank.has_value();
  const double left = of_rank ? kFoldWidth : kIndent / 2;
  std::string text = place.row.group;
  if (of_rank) {
    text = rank_sentence(place.run(), *place.row.rank);
    if (place.state.runs.size() > 1) text = place.run().title() + ": " + text;
  }
  figure.add(Rectangle{0, top, width, RowList::kGroupHeight, theme.band});
  figure.add(Line{{0, top + 0.5}, {width, top + 0.5}, theme.border});
  if (of_rank) draw_fold_mark(top + RowList::kGroupHeight / 2, false, theme, figure);
  figure.add(Text{{left, top + RowList::kGroupHeight - 5},
                  fit_text(text, width - left - kIndent / 2, theme.font_size, true),
                  theme.font_size,
                  Anchor::start,
                  theme.text,
                  true});
}

void draw_row_title(const RowPlace& place, Figure& figure) {
  if (place.stands_for_rank) return draw_folded_title(place, figure);
  // The waits of a stream belong to it.
  const bool thin = place.height < 14 || place.row.kind == RowKind::stall;
  const double size = thin ? std::min(kSmallText, place.height) : place.theme.font_size;
  const std::string note = place.height >= 28 ? note_of(place) : "";
  const double middle = note.empty() && place.height <= 40 ? place.top + place.height / 2 : place.top + 11;
  const double indent = thin ? 2 * kIndent : kIndent;
  write_title(title_of(place), indent, middle + size * 0.36, size, thin ? place.theme.faint_text : place.theme.text,
              figure);
  if (!note.empty()) write_title(note, kIndent, middle + 17, kSmallText, place.theme.faint_text, figure);
}

std::string whole_title(const RowPlace& place) {
  if (!place.stands_for_rank) {
    const std::string note = note_of(place);
    return note.empty() ? place.row.title : place.row.title + "\n" + note;
  }
  return rank_sentence(place.run(), *place.row.rank);
}

}  // namespace memwall::gui
