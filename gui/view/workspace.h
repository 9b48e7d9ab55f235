// What all views of a window share: open runs, visible range, rows, selection, marks. A view shows
// it, asks for changes here and draws again when told; no view knows another.
//
// Functions that read the file (go_to, step, align_to) never throw: what is wrong with the file is
// told by problem(), what is missing for an answer by said().
#pragma once

#include <QObject>
#include <QString>

#include <functional>
#include <optional>
#include <set>
#include <vector>

#include "gui/drawing/canvas_drawing.h"
#include "gui/drawing/theme.h"
#include "gui/model/canvas_state.h"
#include "gui/model/navigation.h"
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
  // A history is missing that was asked for, and nothing reads it any more: that was cancelled, or failed.
  bool history_stopped() const;
  void load_again();     // histories that are missing, and analyses of small runs
  void load_analyses();  // of runs of any size; a comparison follows where two are open
  bool analysed() const;
  // What a frame lacks; loaded() when some of it is there. Blocks that cannot be read are asked for once.
  void load_blocks(const std::vector<MissingBlock>& missing);

  // --- looking. go_to also brings into view.
  void select(std::optional<OpRef> op);
  void go_to(OpRef op);
  void select_storage(std::optional<StorageRef> storage);
  void set_range(std::optional<TimeRange> range);
  void set_cursor(std::optional<Time> time);
  void go_to_time(Time time);  // cursor, and into view
  void set_found(std::vector<OpRef> found);
  void show_path(bool on);                 // loads the analysis where it is missing
  void show_clock(MemoryClock clock);      // of memory; loads histories on the device's where they are missing
  void align_to(std::optional<OpRef> op);  // shifts the second run; nothing: back to 0
  // From the selected op to another.
  void step_in_lane(Direction direction);
  void step_along_dependency(Direction direction);
  // What is chosen: the range, else the storage's life, else the op; nothing if nothing is.
  std::optional<TimeRange> chosen_range();
  // Makes that fill the width but for a margin, and brings the op's lane into view.
  void show_chosen();

  // --- the visible range, rows, marks
  void change_viewport(const std::function<void(Viewport&)>& change);
  void change_rows(const std::function<void(RowList&)>& change);
  void reset_rows();  // order, heights, hidden rows and folded ranks as RowList::of makes them
  void fold_rank(RowList::RankRef rank, bool folded);
  void show_legend(bool on);
  void scroll_to(double y);
  // Scrolls as little as brings a row into view. REQUIRES: row < rows().size().
  void reveal_row(std::size_t row);
  // Logical pixels of the drawing area: right of the titles, below the ruler. Told by the canvas.
  void resize(double width, double height);
  double most_scroll() const;
  void set_bookmarks(std::vector<Bookmark> bookmarks);
  void set_theme(const Theme& theme);
  // A line for the status bar; stays until the next.
  void say(const QString& text);
  // Something is wrong with a file that is open: for a dialog.
  void report(const QString& sentence);

 Q_SIGNALS:
  void runs_changed();  // opened or closed: everything else may have changed with it
  void loaded();        // a history, analysis or comparison is there, or blocks
  void selection_changed();
  void viewport_changed();
  void rows_changed();  // also: scrolled, path or legend shown or not, second run shifted
  void resized();       // the drawing area
  void bookmarks_changed();
  void theme_changed();
  void said(const QString& text);
  void problem(const QString& sentence);

 private:
  void load_history(std::size_t run);
  void load_device_history(std::size_t run);
  void load_analysis(std::size_t run);
  void load_comparison();
  void show_residency_rows();
  void reveal_residency_row();
  void begin_with(std::vector<OpenRun> runs);
  void step(const std::function<std::optional<OpRef>(const OpenRun&, OpRef)>& find, const QString& at_the_end);

  CanvasState state_;
  Theme theme_;
  bool asked_history_ = false;
  double height_ = 600;                // of the drawing area
  std::vector<MissingBlock> loading_;  // that the worker was asked for last
  std::set<MissingBlock> tried_;       // since the picture changed: a frame asks for a block once
  std::set<MissingBlock> unreadable_;
  Background background_;  // last: its end comes before that of what it works for
};

}  // namespace memwall::gui
