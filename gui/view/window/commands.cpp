#include "gui/view/window/commands.h"

#include <QObject>

#include "gui/view/bookmarks.h"
#include "gui/view/canvas/canvas_widget.h"

namespace memwall::gui {
namespace {

QString tr(const char* text) { return QObject::tr(text); }

constexpr double kZoomStep = 1.5, kPanStep = 0.1;

void show_whole(Workspace& workspace) {
  workspace.change_viewport([](Viewport& viewport) { viewport.show_all(); });
}

void undo_zoom(Workspace& workspace) {
  bool undone = false;
  workspace.change_viewport([&](Viewport& viewport) { undone = viewport.undo(); });
  if (!undone) workspace.say(tr("There is no earlier view to go back to."));
}

void toggle_path(Workspace& workspace) { workspace.show_path(!workspace.state().show_path); }

void toggle_clock(Workspace& workspace) {
  const bool on_device = workspace.state().clock == MemoryClock::device;
  workspace.show_clock(on_device ? MemoryClock::host : MemoryClock::device);
}

void toggle_legend(Workspace& workspace) { workspace.show_legend(!workspace.state().show_legend); }

// All of them unfolded: folds all; else unfolds all.
void toggle_ranks(Workspace& workspace) {
  const RowList& rows = workspace.state().rows;
  if (rows.ranks().empty()) return workspace.say(tr("The run holds one rank: there is nothing to fold."));
  workspace.change_rows([](RowList& list) { list.fold_all(list.folded().empty()); });
}

void align(Workspace& workspace) {
  const auto op = workspace.state().selection.op;
  if (!op && workspace.state().shift == Duration{}) {
    return workspace.say(tr("Click a span first: both runs are then drawn so that it begins at the same place."));
  }
  workspace.align_to(op);
}

void clear(Workspace& workspace) {
  workspace.set_range(std::nullopt);
  workspace.select(std::nullopt);
  workspace.select_storage(std::nullopt);
  workspace.set_cursor(std::nullopt);
  workspace.set_found({});
  workspace.say({});
}

void show_all_rows(Workspace& workspace) {
  workspace.change_rows([](RowList& rows) {
    rows.filter({});
    for (std::size_t i = 0; i < rows.rows().size(); ++i) rows.row(i).hidden = false;
  });
}

// As they were when the file was opened for the first time.
void reset_rows(Workspace& workspace) { workspace.reset_rows(); }

// Nothing happens without a run.
std::function<void()> with_run(Workspace& workspace, std::function<void(Workspace&)> act) {
  return [&workspace, act = std::move(act)] {
    if (workspace.has_run()) act(workspace);
  };
}

std::function<void()> stepping(Workspace& workspace, void (Workspace::*step)(Direction), Direction direction) {
  return with_run(workspace, [step, direction](Workspace& w) { (w.*step)(direction); });
}

std::vector<Command> view_commands(Workspace& w) {
  const QString view = tr("&View");
  return {
      {view,
       tr("Zoom to what is chosen"),
       {"F"},
       tr("Zooms to the chosen range, op, or life of a storage."),
       with_run(w, [](Workspace& workspace) { workspace.show_chosen(); }),
       {}},
      {view, tr("Whole run"), {"Shift+F"}, tr("Shows the whole run."), with_run(w, show_whole), {}},
      {view, tr("Undo zoom"), {"Backspace"}, tr("Goes back to what was visible before."), with_run(w, undo_zoom), {}},
      {view, "-", {}, {}, {}, {}},
      {view,
       tr("Critical path"),
       {"Q", "K"},
       tr("Highlights the critical path and dims the rest; again: not."),
       with_run(w, toggle_path),
       {}},
      {view,
       tr("Memory by the device's clock"),
       {"T"},
       tr("Memory of tiers while bytes hold data on the device; again: by the allocator's, the host's clock."),
       with_run(w, toggle_clock),
       {}},
      {view,
       tr("Legend"),
       {"L"},
       tr("Shows what the colours mean; again: not."),
       [&w] { toggle_legend(w); },
       {}},
      {view,
       tr("Fold or unfold ranks"),
       {"R"},
       tr("Unfolds the lanes of all ranks; again: folds each rank into one row."),
       with_run(w, toggle_ranks),
       {}},
      {view,
       tr("Show all lanes"),
       {"Shift+L"},
       tr("Shows hidden lanes and drops the filter."),
       with_run(w, show_all_rows),
       {}},
      {view,
       tr("Reset lanes"),
       {},
       tr("Order, heights and hidden lanes as when the file was first opened."),
       with_run(w, reset_rows),
       {}},
      {view,
       tr("Clear what is chosen"),
       {"Esc"},
       tr("Drops chosen op, storage, range, cursor and found ops."),
       with_run(w, clear),
       {}},
  };
}

std::vector<Command> go_commands(Workspace& w) {
  const QString go = tr("&Go");
  return {
      {go,
       tr("Next op in lane"),
       {"."},
       tr("Goes to the next op of its lane."),
       stepping(w, &Workspace::step_in_lane, Direction::forward),
       {}},
      {go,
       tr("Previous op in lane"),
       {","},
       tr("Goes to the op before it in its lane."),
       stepping(w, &Workspace::step_in_lane, Direction::back),
       {}},
      {go,
       tr("What it waited for"),
       {"["},
       tr("Goes to the op that let the chosen one begin."),
       stepping(w, &Workspace::step_along_dependency, Direction::back),
       {}},
      {go,
       tr("What waited for it"),
       {"]"},
       tr("Goes to the first op that the chosen one let begin."),
       stepping(w, &Workspace::step_along_dependency, Direction::forward),
       {}},
      {go,
       tr("Peak of memory"),
       {"P"},
       tr("Puts the cursor at the peak of the first tier; again: of the next."),
       with_run(w, jump_to_peak),
       {}},
      {go, tr("Mark here"), {"M"}, tr("Marks the chosen range, else the cursor."), with_run(w, add_bookmark), {}},
  };
}

}  // namespace

std::vector<Command> workspace_commands(Workspace& w) {
  std::vector<Command> commands = view_commands(w);
  std::vector<Command> others = go_commands(w);
  others.push_back(
      {tr("&Compare"),
       tr("Align both runs at the chosen op"),
       {"="},
       tr("Draws the second run so that the chosen op begins below its counterpart; without a chosen op: as it ran."),
       with_run(w, align),
       {}});
  commands.insert(commands.end(), std::make_move_iterator(others.begin()), std::make_move_iterator(others.end()));
  return commands;
}

std::vector<Command> navigation_commands(Workspace& w, CanvasWidget& canvas) {
  const auto zoom = [&w, &canvas](double factor) {
    return [&w, &canvas, factor] {
      if (!w.has_run()) return;
      canvas.begin_gesture();
      canvas.zoom(factor);
    };
  };
  const auto pan = [&w, &canvas](double share) {
    return [&w, &canvas, share] {
      if (!w.has_run()) return;
      canvas.begin_gesture();
      canvas.pan(share);
    };
  };
  const auto end = [&w](bool last) {
    return [&w, last] {
      w.change_viewport([&](Viewport& viewport) {
        viewport.remember();
        viewport.pan(viewport.x(last ? viewport.whole().end : viewport.whole().begin) - (last ? viewport.width() : 0));
      });
    };
  };
  const QString view = tr("&View");
  return {
      {view,
       tr("Zoom in"),
       {"W", "+"},
       tr("Zooms in at the pointer while the key is held; with Shift faster."),
       {},
       zoom(kZoomStep)},
      {view, tr("Zoom out"), {"S", "-"}, tr("Zooms out likewise."), {}, zoom(1 / kZoomStep)},
      {view,
       tr("Earlier"),
       {"A", "Left"},
       tr("Moves to earlier times while the key is held; with Shift faster."),
       {},
       pan(-kPanStep)},
      {view, tr("Later"), {"D", "Right"}, tr("Moves to later times likewise."), {}, pan(kPanStep)},
      {view, tr("To the begin"), {"Home"}, tr("The begin of the run, at the same zoom."), {}, end(false)},
      {view, tr("To the end"), {"End"}, tr("The end of the run, at the same zoom."), {}, end(true)},
  };
}

std::vector<Gesture> gestures() {
  return {
      {tr("Click a span"), tr("Chooses the op and puts the cursor there.")},
      {tr("Double click"), tr("Zooms to the span.")},
      {tr("Drag with the left button"), tr("Chooses a range of time; its ends can be dragged afterwards.")},
      {tr("Drag with the middle or right button, or with Space held"), tr("Moves the picture.")},
      {tr("Ctrl + wheel"), tr("Zooms at the pointer.")},
      {tr("Wheel"),
       tr("Scrolls the lanes; above ruler and overview, and where all lanes are visible, zooms at the pointer.")},
      {tr("Shift + wheel, or wheel sideways"), tr("Moves to earlier or later times.")},
      {tr("Click a mark's flag in the ruler"), tr("Chooses its range or instant; double click: names the mark.")},
      {tr("Right click"), tr("A menu for what is under the pointer.")},
      {tr("Drag a lane's title"), tr("Moves the lane; drag its lower edge to change its height.")},
      {tr("Click a rank's title"), tr("Folds its lanes into one row, or unfolds them.")},
      {tr("Drag in the overview"), tr("Moves the visible window, or chooses a new one.")},
      {tr("Up, Down, Page Up, Page Down"), tr("Scroll the lanes.")},
      {tr("Drop a file"), tr("Opens it; two files: compares them.")},
  };
}

}  // namespace memwall::gui
