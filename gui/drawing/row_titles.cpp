#include "gui/drawing/row_titles.h"

#include "gui/drawing/link_window.h"
#include "traces/figure/text_metrics.h"

namespace memwall::gui {
namespace {

constexpr double kIndent = 12;

// A second line below the title, where there is room: what a link carries, whose clock memory is counted on.
std::string note_below(const RowPlace& place) {
  if (place.height < 28) return "";
  if (place.row.kind == RowKind::link) return link_note(place);
  if (place.row.kind != RowKind::occupancy) return "";
  return place.state.clock == MemoryClock::device ? "holds data, by the device's clock"
                                                  : "by the allocator's (host) clock";
}

}  // namespace

void draw_title_column(const Theme& theme, double height, Figure& figure) {
  figure.add(Rectangle{0, 0, kTitleWidth, height, theme.band});
  figure.add(Line{{kTitleWidth - 0.5, 0}, {kTitleWidth - 0.5, height}, theme.border});
}

void draw_group_line(const std::string& group, const Theme& theme, double top, double width, Figure& figure) {
  figure.add(Rectangle{0, top, width, RowList::kGroupHeight, theme.band});
  figure.add(Line{{0, top + 0.5}, {width, top + 0.5}, theme.border});
  figure.add(Text{{6, top + RowList::kGroupHeight - 5},
                  fit_text(group, width - 12, theme.font_size, true),
                  theme.font_size,
                  Anchor::start,
                  theme.text,
                  true});
}

void draw_row_title(const RowPlace& place, Figure& figure) {
  // The waits of a stream belong to it.
  const bool thin = place.height < 14 || place.row.kind == RowKind::stall;
  const double size = thin ? std::min(kSmallText, place.height) : place.theme.font_size;
  const std::string note = note_below(place);
  const double middle = note.empty() && place.height <= 40 ? place.top + place.height / 2 : place.top + 11;
  const double indent = thin ? 2 * kIndent : kIndent;
  figure.add(Text{{indent, middle + size * 0.36},
                  fit_text(place.row.title, kTitleWidth - indent - 8, size),
                  size,
                  Anchor::start,
                  thin ? place.theme.faint_text : place.theme.text});
  if (!note.empty())
    figure.add(Text{{kIndent, middle + 17},
                    fit_text(note, kTitleWidth - kIndent - 8, kSmallText),
                    kSmallText,
                    Anchor::start,
                    place.theme.faint_text});
}

}  // namespace memwall::gui
