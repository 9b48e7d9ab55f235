// The window: canvas, panels, menus, and what is remembered between starts.
//
// Whatever a file holds, the window and what was open in it stay; what is wrong is told in a dialog,
// each thing once.
#pragma once

#include <QMainWindow>

#include <map>
#include <set>
#include <vector>

#include "gui/view/window/commands.h"
#include "gui/view/window/run_opener.h"
#include "gui/view/window/session_store.h"
#include "gui/view/window/theme_choice.h"
#include "gui/view/workspace.h"

class QActionGroup;
class QLabel;
class QStackedWidget;

namespace memwall::gui {

class ViewerPage;
class WelcomePage;

class MainWindow : public QMainWindow {
  Q_OBJECT
 public:
  explicit MainWindow(SessionStore store = SessionStore(), QWidget* parent = nullptr);
  ~MainWindow() override;

  // One run, or two to compare; what is open stays until they are. More than two are refused in a dialog.
  void open(const QStringList& paths);
  void wait();  // until nothing is read or worked out any more: for tests

  Workspace& workspace() { return workspace_; }
  RunOpener& opener() { return opener_; }
  ViewerPage& page() { return *page_; }
  const std::vector<Command>& commands() const { return commands_; }

  void remember();  // what is arranged, for the next start; closing the window does it
  // A sentence in a dialog that waits for nobody; the same sentence again: nothing, until other runs are opened.
  void show_problem(const QString& sentence);

 protected:
  void closeEvent(QCloseEvent* event) override;
  void dragEnterEvent(QDragEnterEvent* event) override;
  void dropEvent(QDropEvent* event) override;

 private:
  // main_window.cpp
  void take(const std::vector<OpenRun>& runs);
  void restore(const QStringList& paths);
  QStringList open_paths() const;
  void open_dialog();
  void compare();  // opens a second run, or puts it aside, or takes it back
  void close_runs();
  void show_title();
  void show_selection();
  // main_window_menus.cpp
  void make_commands();
  void make_menus();
  QAction* add_action(QMenu& menu, const Command& command);
  void show_recent();
  void choose_theme(const QString& choice);
  void ask_bookmark_name(std::size_t bookmark);
  void show_menu_of(const Hit& hit, const QPoint& where);
  void show_help();
  void export_figure();
  void copy_details();
  void copy_picture();
  // main_window_panels.cpp
  void make_panels();
  void add_panel(const QString& key, const QString& title, QWidget* content, bool for_comparison, bool shown);
  void arrange_panels();  // as at first
  void show_panels_for_runs();
  void raise_first_panels();
  void find();  // the search panel, with the cursor in it
  void show_panel(const QString& key);

  SessionStore store_;
  ThemeChoice themes_;
  ProgramSession program_;
  Workspace workspace_;
  RunOpener opener_;
  std::vector<Command> commands_;
  std::set<QString> reported_problems_;
  std::optional<OpenRun> aside_;  // the second run while it is not compared

  struct DockedPanel {
    QDockWidget* dock = nullptr;
    bool for_comparison = false, shown_at_first = true;
    bool wanted = true;   // while it is of no use: whether it is shown when it is again
    bool useful = false;  // for the runs that are open
  };
  std::map<QString, DockedPanel> panels_;
  QStackedWidget* stack_ = nullptr;
  WelcomePage* welcome_ = nullptr;
  ViewerPage* page_ = nullptr;
  QMenu *recent_ = nullptr, *panels_menu_ = nullptr;
  QActionGroup* theme_group_ = nullptr;
  QLabel *message_ = nullptr, *selection_ = nullptr, *pointer_ = nullptr;
};

}  // namespace memwall::gui
