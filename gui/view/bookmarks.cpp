#include "gui/view/bookmarks.h"

#include <QObject>

#include <algorithm>

namespace memwall::gui {
namespace {

QString tr(const char* text) { return QObject::tr(text); }

}  // namespace

void jump_to_peak(Workspace& workspace) {
  const CanvasState& state = workspace.state();
  struct PeakPlace {
    std::size_t row = 0;
    Time time{};
  };
  std::vector<PeakPlace> peaks;
  for (const std::size_t i : state.rows.shown()) {
    const CanvasRow& row = state.rows.rows()[i];
    if (row.kind != RowKind::occupancy) continue;
    const auto& tiers = state.runs[row.run].outline().run.result.tiers;
    const Duration shift = row.run == 0 ? Duration{} : state.shift;
    if (row.index < tiers.size()) peaks.push_back({i, tiers[row.index].peak_time + shift});
  }
  if (peaks.empty()) return workspace.say(tr("No lane of memory is shown."));
  const auto here = std::find_if(peaks.begin(), peaks.end(),
                                 [&](const PeakPlace& peak) { return state.selection.cursor == peak.time; });
  const auto next = here == peaks.end() || here + 1 == peaks.end() ? peaks.begin() : here + 1;
  workspace.go_to_time(next->time);
  workspace.reveal_row(next->row);
  workspace.say(
      tr("The peak of %1. P again: of the next tier.").arg(QString::fromStdString(state.rows.rows()[next->row].title)));
}

void add_bookmark(Workspace& workspace) {
  const Selection& chosen = workspace.state().selection;
  if (!chosen.range && !chosen.cursor) {
    return workspace.say(tr("Click at an instant or drag a range first: the mark goes there."));
  }
  Bookmark mark;
  mark.range = chosen.range ? *chosen.range : TimeRange{*chosen.cursor, *chosen.cursor};
  std::vector<Bookmark> bookmarks = workspace.state().bookmarks;
  mark.label = tr("mark %1").arg(bookmarks.size() + 1).toStdString();
  bookmarks.push_back(mark);
  workspace.set_bookmarks(std::move(bookmarks));
  workspace.say(tr("Marked. Double click the mark's flag in the ruler to name it; the panel Marks lists all."));
}

void show_bookmark(Workspace& workspace, std::size_t bookmark) {
  if (bookmark >= workspace.state().bookmarks.size()) return;
  const TimeRange range = workspace.state().bookmarks[bookmark].range;
  workspace.set_range(range.length() > Duration{} ? std::optional(range) : std::nullopt);
  workspace.set_cursor(range.begin);
}

void name_bookmark(Workspace& workspace, std::size_t bookmark, const QString& name) {
  std::vector<Bookmark> bookmarks = workspace.state().bookmarks;
  if (bookmark >= bookmarks.size()) return;
  bookmarks[bookmark].label = name.toStdString();
  workspace.set_bookmarks(std::move(bookmarks));
}

void remove_bookmark(Workspace& workspace, std::size_t bookmark) {
  std::vector<Bookmark> bookmarks = workspace.state().bookmarks;
  if (bookmark >= bookmarks.size()) return;
  bookmarks.erase(bookmarks.begin() + static_cast<std::ptrdiff_t>(bookmark));
  workspace.set_bookmarks(std::move(bookmarks));
}

}  // namespace memwall::gui
