// What the viewer remembers: of a file, and of the program. Plain data, and JSON in and out.
#pragma once

#include <QByteArray>
#include <QString>
#include <QStringList>

#include <optional>
#include <set>
#include <vector>

#include "gui/model/canvas_state.h"

namespace memwall::gui {

// Of a run, or of a pair of runs.
struct FileSession {
  struct Row {
    std::string key;  // CanvasRow::key()
    double height = 22;
    bool hidden = false;
    bool operator==(const Row&) const = default;
  };
  std::vector<Row> rows;  // in their order
  std::optional<TimeRange> visible;
  std::vector<Bookmark> bookmarks;
  double scroll = 0;
  bool show_path = false;
  std::optional<std::set<RowList::RankRef>> folded;  // ranks; nothing: as the file is first shown
  QByteArray panels;  // QMainWindow::saveState()
  bool operator==(const FileSession&) const = default;
};

struct ProgramSession {
  QByteArray geometry;  // QWidget::saveGeometry()
  QByteArray panels;    // for files that have no session yet
  QString theme;        // "system", "light" or "dark"
  QStringList recent;   // paths, latest first
  bool legend = true;
  bool operator==(const ProgramSession&) const = default;
};

inline constexpr int kMostRecent = 10;

QByteArray to_json(const FileSession& session);
QByteArray to_json(const ProgramSession& session);
// Throw InputError with a sentence about what is wrong. Whatever the text holds, what comes out can be used: finite
// heights and positions, ranges that begin before they end, known themes. A range may lie beyond the run.
FileSession file_session_from_json(const QByteArray& text);
ProgramSession program_session_from_json(const QByteArray& text);

// The session of what is shown; `panels` is left empty.
FileSession session_of(const CanvasState& state);
// Rows in the order, height and visibility of the session; rows that it does not know stay behind the one that they
// stand behind in `rows`. Rows of the session that are not there are passed over.
void arrange(RowList& rows, const FileSession& session);

}  // namespace memwall::gui
