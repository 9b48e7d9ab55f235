// A window with a run in it, for tests that press its keys and move its mouse.
#pragma once

#include <QApplication>
#include <QMessageBox>
#include <QStandardPaths>
#include <QTest>

#include <filesystem>
#include <memory>
#include <string>

#include "gui/view/canvas/canvas_widget.h"
#include "gui/view/window/main_window.h"
#include "gui/view/window/viewer_page.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/test_machine.h"
#include "traces/run/file/run_file.h"
#include "traces/run/run_recorder.h"

namespace memwall::gui {

// A step or two of a small GPT; `layers` makes runs that differ.
inline Run small_gpt_run(int layers = 2) {
  GptShape shape;
  shape.layers = layers;
  shape.steps = 2;
  shape.launch_cost = Duration(5'000'000);
  return simulate_and_record(gpt_step(shape), test_machine(), {});
}

inline QString path_of(const std::filesystem::path& path) { return QString::fromStdString(path.string()); }

class WindowFixture {
 public:
  explicit WindowFixture(int runs = 1) {
    qputenv("MEMWALL_PROBE_PROGRAM", MEMWALL_PROBE);
    write_run(small_gpt_run(2), first_path());
    write_run(small_gpt_run(3), second_path());
    start();
    if (runs > 0) open(runs);
  }
  std::filesystem::path first_path() const { return folder / "base.h5"; }
  std::filesystem::path second_path() const { return folder / "other.h5"; }
  QString sessions() const { return path_of(folder / "sessions"); }

  // A new window, as the next start of the program makes it.
  void start() {
    window = std::make_unique<MainWindow>(SessionStore(sessions()));
    window->resize(1100, 700);
    window->show();
    window->activateWindow();
    [[maybe_unused]] const bool active = QTest::qWaitForWindowActive(window.get(), 3000);
  }
  void open(int runs = 1) {
    QStringList paths{path_of(first_path())};
    if (runs == 2) paths.append(path_of(second_path()));
    window->open(paths);
    settle();
  }
  void settle() {
    window->wait();
    QApplication::processEvents();
    window->wait();
  }

  CanvasWidget& canvas() { return window->page().canvas(); }
  Workspace& workspace() { return window->workspace(); }
  const CanvasState& state() { return workspace().state(); }
  TimeRange visible() { return state().viewport.visible(); }

  // The middle of the row of a lane, and of a time in it.
  QPoint at(RowKind kind, Time time) {
    for (const RowList::Place& place : state().rows.places()) {
      if (state().rows.rows()[place.row].kind != kind) continue;
      return QPointF(kTitleWidth + state().viewport.x(time),
                     kRulerHeight + place.top + place.height / 2 - state().scroll)
          .toPoint();
    }
    return {};
  }
  // A span of the first stream that is wide enough to be hit.
  OpRef wide_op() {
    OpRef widest;
    Duration longest{-1};
    const OpRef none;
    for (OpId op = 0; op < state().runs[0].outline().ops; ++op) {
      const OpRef ref{0, op, false};
      const OpRecord record = state().runs[0].source->op(op).record;
      if (record.start == kNever || record.end - record.start <= longest) continue;
      longest = record.end - record.start;
      widest = ref;
    }
    return longest > Duration{-1} ? widest : none;
  }

  QMessageBox* problem() {
    for (QWidget* widget : QApplication::topLevelWidgets()) {
      auto* box = qobject_cast<QMessageBox*>(widget);
      if (box && box->isVisible() && box->objectName() == "problem") return box;
    }
    return nullptr;
  }

  ScratchFolder folder;
  std::unique_ptr<MainWindow> window;
};

}  // namespace memwall::gui
