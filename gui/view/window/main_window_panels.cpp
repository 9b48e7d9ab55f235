// MainWindow: the panels around the canvas, and where they stand.
#include <QDockWidget>
#include <QLineEdit>
#include <QMenu>

#include "gui/view/panels/bookmark_panel.h"
#include "gui/view/window/main_window.h"
#include "gui/view/panels/panels.h"

namespace memwall::gui {
namespace {

// Where a panel stands at first. What is not listed stands on the right.
bool stands_below(const QString& key) {
  for (const char* low : {"statistics", "hierarchy", "differences", "waterfall", "marks"}) {
    if (key == QLatin1String(low)) return true;
  }
  return false;
}

// Panels on the right that stand in the upper group; the others make a second group below it.
bool stands_on_top(const QString& key) { return key == "details" || key == "search" || key == "peak"; }

}  // namespace

void MainWindow::make_panels() {
  for (const PanelKind& kind : panel_kinds()) {
    add_panel(kind.key, kind.title, kind.make(workspace_, this), kind.for_comparison, kind.shown_at_first);
  }
  add_panel("marks", tr("Marks"), new BookmarkPanel(workspace_, this), false, true);
}

void MainWindow::add_panel(const QString& key, const QString& title, QWidget* content, bool for_comparison,
                           bool shown) {
  auto* dock = new QDockWidget(title, this);
  dock->setObjectName(key);  // saveState() knows it by that
  dock->setWidget(content);
  content->setAccessibleName(title);
  panels_[key] = {dock, for_comparison, shown, shown};
}

void MainWindow::arrange_panels() {
  QDockWidget *upper = nullptr, *lower = nullptr, *below = nullptr;
  // In the order of panel_kinds(), so that the first of a group is in front.
  std::vector<QString> order;
  for (const PanelKind& kind : panel_kinds()) order.push_back(kind.key);
  order.push_back("marks");
  // The first of each group before the others: groups that have tabs already cannot be split any more.
  for (const QString& key : order) {
    QDockWidget* dock = panels_[key].dock;
    QDockWidget*& group = stands_below(key) ? below : stands_on_top(key) ? upper : lower;
    dock->setFloating(false);
    removeDockWidget(dock);
    if (!group) addDockWidget(stands_below(key) ? Qt::BottomDockWidgetArea : Qt::RightDockWidgetArea, group = dock);
  }
  if (upper && lower) splitDockWidget(upper, lower, Qt::Vertical);
  for (const QString& key : order) {
    QDockWidget* dock = panels_[key].dock;
    QDockWidget* group = stands_below(key) ? below : stands_on_top(key) ? upper : lower;
    if (dock != group) tabifyDockWidget(group, dock);
  }
  setCorner(Qt::BottomRightCorner, Qt::RightDockWidgetArea);
  QList<QDockWidget*> sides;
  for (QDockWidget* dock : {upper, lower}) {
    if (dock) sides.append(dock);
  }
  resizeDocks(sides, QList<int>(sides.size(), 380), Qt::Horizontal);
  if (below) resizeDocks({below}, {210}, Qt::Vertical);
  for (auto& [key, panel] : panels_) {
    panel.wanted = panel.shown_at_first;
    panel.useful = true;
    panel.dock->setVisible(panel.shown_at_first);
  }
}

// The panels that a person needs first, where nothing is remembered.
void MainWindow::raise_first_panels() {
  for (const char* key : {"details", "live_set", "statistics"}) {
    const auto found = panels_.find(key);
    if (found != panels_.end() && !found->second.dock->isHidden()) found->second.dock->raise();
  }
}

// Panels are of no use without a run; those that compare, without a second one.
void MainWindow::show_panels_for_runs() {
  const std::size_t runs = workspace_.state().runs.size();
  for (auto& [key, panel] : panels_) {
    const bool useful = panel.for_comparison ? runs == 2 : runs >= 1;
    panel.dock->toggleViewAction()->setEnabled(useful);
    if (useful && !panel.useful) panel.dock->setVisible(panel.wanted);
    if (!useful && panel.useful) panel.wanted = !panel.dock->isHidden();
    if (!useful) panel.dock->hide();
    panel.useful = useful;
  }
}

void MainWindow::show_panel(const QString& key) {
  const auto found = panels_.find(key);
  if (found == panels_.end()) return;
  found->second.dock->show();
  found->second.dock->raise();
}

void MainWindow::find() {
  if (!workspace_.has_run()) return workspace_.say(tr("Open a run first: there is nothing to search."));
  show_panel("search");
  const auto found = panels_.find("search");
  if (found == panels_.end()) return;
  auto* edit = found->second.dock->findChild<QLineEdit*>();
  if (!edit) return;
  edit->setFocus(Qt::ShortcutFocusReason);
  edit->selectAll();
}

}  // namespace memwall::gui
