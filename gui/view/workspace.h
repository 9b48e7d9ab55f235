// What all views of a window share: open runs, visible range, rows, selection, marks. A view shows
// it, asks for changes here and draws again when told; no view knows another.
#pragma once

#include <QObject>
#include <QString>

#include <functional>
#include <optional>
#include <vector>

#include "gui/drawing/theme.h"
#include "gui/model/canvas_state.h"
#include "gui/view/background.h"

namespace memwall::gui {

class Workspace : public QObject {
  Q_OBJECT
 public:
  explicit Workspace(QObject* parent = nullptr);

  const CanvasState& state() const { return state_; }
  const Theme& theme() const { return theme_; }
  Background& background() { return background_; }
  bool has_run() const { return !state_.runs.empty(); }

  // --- runs. Replaces what is open, and loads histories, and analyses of small runs, in the background.
  void open(std::vector<OpenRun> runs);
  void close();
  void load_analyses();  // of runs of any size; a comparison follows where two are open
  bool analysed() const;

  // --- looking. go_to also brings into view.
  void select(std::optional<OpRef> op);
  void go_to(OpRef op);
  void select_storage(std::optional<StorageRef> storage);
  void set_range(std::optional<TimeRange> range);
  void set_cursor(std::optional<Time> time);
  void go_to_time(Time time);  // cursor, and into view
  void set_found(std::vector<OpRef> found);
  void show_path(bool on);                 // loads the analysis where it is missing
  void align_to(std::optional<OpRef> op);  // shifts the second run; nothing: back to 0

  // --- the visible range, rows, marks
  void change_viewport(const std::function<void(Viewport&)>& change);
  void change_rows(const std::function<void(RowList&)>& change);
  void scroll_to(double y);
  void set_bookmarks(std::vector<Bookmark> bookmarks);
  void set_theme(const Theme& theme);
  // A line for the status bar; stays until the next.
  void say(const QString& text);

 Q_SIGNALS:
  void runs_changed();  // opened or closed
  void loaded();        // a history, analysis or comparison is there, or blocks
  void selection_changed();
  void viewport_changed();
  void rows_changed();
  void bookmarks_changed();
  void theme_changed();
  void said(const QString& text);

 private:
  void load_history(std::size_t run);
  CanvasState state_;
  Theme theme_;
  Background background_;
};

}  // namespace memwall::gui
