// MainWindow: keys, menus, and what they start that is no matter of the workspace alone.
#include <QActionGroup>
#include <QApplication>
#include <QClipboard>
#include <QDockWidget>
#include <QFileInfo>
#include <QInputDialog>
#include <QMenu>
#include <QMenuBar>
#include <QMessageBox>

#include <algorithm>

#include "gui/model/details.h"
#include "gui/view/bookmarks.h"
#include "gui/view/canvas/canvas_menus.h"
#include "gui/view/canvas/canvas_widget.h"
#include "gui/view/value_text.h"
#include "gui/view/window/export_dialog.h"
#include "gui/view/window/main_window.h"
#include "gui/view/window/shortcut_page.h"
#include "gui/view/window/viewer_page.h"
#include "gui/view/window/welcome_page.h"
#include "sim/error.h"

namespace memwall::gui {

void MainWindow::make_commands() {
  const QString file = tr("&File"), go = tr("&Go"), compare_menu = tr("&Compare"), help = tr("&Help");
  commands_ = {
      {file, tr("Open…"), {"Ctrl+O"}, tr("Opens a run, or two to compare."), [this] { open_dialog(); }, {}},
      {file, tr("Close"), {"Ctrl+W"}, tr("Closes what is open; the window stays."), [this] { close_runs(); }, {}},
      {file, "-", {}, {}, {}, {}},
      {file, tr("Export a figure…"), {"Ctrl+E"}, tr("Writes SVG, PDF or PNG."), [this] { export_figure(); }, {}},
      {file,
       tr("Copy details"),
       {"Ctrl+C"},
       tr("Details of the chosen op or storage, as text."),
       [this] { copy_details(); },
       {}},
      {file,
       tr("Copy picture"),
       {"Ctrl+Shift+C"},
       tr("What the canvas shows, as an image."),
       [this] { copy_picture(); },
       {}},
      {file, "-", {}, {}, {}, {}},
      {file, tr("Quit"), {"Ctrl+Q"}, tr("Closes the window; what is arranged is remembered."), [this] { close(); }, {}},
  };
  const auto append = [this](std::vector<Command> more) {
    commands_.insert(commands_.end(), more.begin(), more.end());
  };
  append(navigation_commands(workspace_, page_->canvas()));
  append(workspace_commands(workspace_));
  append({
      {go,
       tr("Search"),
       {"/", "Ctrl+F"},
       tr("Finds ops and storages by words, ops by #number."),
       [this] { find(); },
       {}},
      {compare_menu,
       tr("Second run"),
       {"C"},
       tr("Opens a second run to compare with; then: puts it aside, or takes it back."),
       [this] { compare(); },
       {}},
      {help, tr("Keys and gestures"), {"?", "F1"}, tr("This page."), [this] { show_help(); }, {}},
  });
  // By menus, in the order in which they first occur: as the menu bar and the help page show them.
  std::vector<QString> order;
  const auto place = [&](const Command& command) {
    auto found = std::find(order.begin(), order.end(), command.menu);
    if (found == order.end()) found = order.insert(order.end(), command.menu);
    return found - order.begin();
  };
  for (const Command& command : commands_) place(command);
  std::stable_sort(commands_.begin(), commands_.end(),
                   [&](const Command& a, const Command& b) { return place(a) < place(b); });
}

QAction* MainWindow::add_action(QMenu& menu, const Command& command) {
  QAction* action = menu.addAction(command.text);
  action->setStatusTip({});
  action->setToolTip(command.help);
  QList<QKeySequence> keys;
  for (const QString& key : command.keys) keys.append(QKeySequence(key));
  if (command.by_menu) {  // a held key: shown only, NavigationKeys acts
    action->setText(command.text + '\t' + command.keys[0]);
    connect(action, &QAction::triggered, this, command.by_menu);
    return action;
  }
  action->setShortcuts(keys);
  connect(action, &QAction::triggered, this, command.act);
  // Out of a text field too, where the other keys would be typed.
  if (keys.contains(QKeySequence("Esc"))) {
    connect(action, &QAction::triggered, this, [this] { page_->canvas().setFocus(); });
  }
  if (keys.contains(QKeySequence("Ctrl+C"))) {  // tables copy their own cells
    action->setShortcutContext(Qt::WidgetShortcut);
    page_->canvas().addAction(action);
  } else {
    addAction(action);  // works while the menu bar is hidden too
  }
  return action;
}

void MainWindow::make_menus() {
  std::map<QString, QMenu*> menus;
  for (const Command& command : commands_) {
    QMenu*& menu = menus[command.menu];
    if (!menu) menu = menuBar()->addMenu(command.menu);
    if (command.text == "-") {
      menu->addSeparator();
    } else {
      add_action(*menu, command);
    }
  }
  QMenu* file = menus[tr("&File")];
  recent_ = new QMenu(tr("Open &recent"), file);
  file->insertMenu(file->actions().at(1), recent_);

  QMenu* view = menus[tr("&View")];
  view->addSeparator();
  panels_menu_ = view->addMenu(tr("&Panels"));
  for (const auto& [key, panel] : panels_) panels_menu_->addAction(panel.dock->toggleViewAction());
  panels_menu_->addSeparator();
  panels_menu_->addAction(tr("As at first"), this, [this] {
    arrange_panels();
    show_panels_for_runs();
    raise_first_panels();
  });
  QMenu* themes = view->addMenu(tr("&Theme"));
  theme_group_ = new QActionGroup(this);
  for (const auto& [choice, text] :
       {std::pair{"system", tr("As the desktop")}, std::pair{"light", tr("Light")}, std::pair{"dark", tr("Dark")}}) {
    QAction* action = themes->addAction(text, this, [this, choice = QString(choice)] { choose_theme(choice); });
    action->setCheckable(true);
    action->setData(choice);
    theme_group_->addAction(action);
  }
  menus[tr("&Compare")]->addAction(tr("Work out differences of large runs"), &workspace_, &Workspace::load_analyses);
  menus[tr("&Help")]->addAction(tr("About"), this, [this] {
    QMessageBox::about(this, tr("About memwall viewer"),
                       tr("memwall viewer %1\nA training step on a hierarchy of memories, as it was simulated.")
                           .arg(QApplication::applicationVersion()));
  });
}

void MainWindow::show_recent() {
  recent_->clear();
  for (const QString& path : program_.recent) {
    recent_->addAction(path, this, [this, path] { open({path}); });
  }
  recent_->setEnabled(!program_.recent.isEmpty());
  welcome_->set_recent(program_.recent);
}

void MainWindow::choose_theme(const QString& choice) {
  program_.theme = choice;
  for (QAction* action : theme_group_->actions()) action->setChecked(action->data() == choice);
  workspace_.set_theme(themes_.apply(choice));
}

void MainWindow::show_menu_of(const Hit& hit, const QPoint& where) {
  auto* menu = new QMenu(this);
  menu->setAttribute(Qt::WA_DeleteOnClose);
  if (hit.on_title && hit.row) {
    fill_title_menu(*menu, workspace_, *hit.row);
  } else if (!hit.on_title) {
    if (const auto bookmark = hit.bookmark) {
      menu->addAction(tr("Name the mark…"), this, [this, bookmark] { ask_bookmark_name(*bookmark); });
      menu->addAction(tr("Remove the mark"), this, [this, bookmark] { remove_bookmark(workspace_, *bookmark); });
      menu->addSeparator();
    }
    fill_span_menu(*menu, workspace_, hit, [this] { copy_details(); });
  }
  menu->popup(where);
}

void MainWindow::ask_bookmark_name(std::size_t bookmark) {
  if (bookmark >= workspace_.state().bookmarks.size()) return;
  auto* dialog = new QInputDialog(this);
  dialog->setObjectName("bookmark_name");
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setWindowTitle(tr("Name the mark"));
  dialog->setLabelText(tr("Name:"));
  dialog->setTextValue(text_of(workspace_.state().bookmarks[bookmark].label));
  connect(dialog, &QInputDialog::textValueSelected, this,
          [this, bookmark](const QString& name) { name_bookmark(workspace_, bookmark, name); });
  connect(dialog, &QInputDialog::finished, this, [this] { page_->canvas().setFocus(); });
  dialog->open();
}

// Above the window until it is closed: Esc and ? are the page's then.
void MainWindow::show_help() { (new ShortcutPage(commands_, this))->open(); }

void MainWindow::export_figure() {
  if (!workspace_.has_run()) return workspace_.say(tr("Open a run first: there is nothing to export."));
  (new ExportDialog(workspace_, page_->canvas().size(), this))->open();
}

void MainWindow::copy_details() {
  const Selection& chosen = workspace_.state().selection;
  if (!chosen.op && !chosen.storage)
    return workspace_.say(tr("Choose an op or a storage first: there are no details."));
  try {
    const auto& runs = workspace_.state().runs;
    const auto sections = chosen.op ? details_of(runs[chosen.op->run], *chosen.op)
                                    : details_of(runs[chosen.storage->run], *chosen.storage);
    QApplication::clipboard()->setText(QString::fromStdString(to_text(sections)));
    workspace_.say(tr("The details are on the clipboard."));
  } catch (const InputError& error) {
    workspace_.report(QString::fromUtf8(error.what()));
  }
}

void MainWindow::copy_picture() {
  if (!workspace_.has_run()) return workspace_.say(tr("Open a run first: there is no picture."));
  QApplication::clipboard()->setPixmap(page_->picture());
  workspace_.say(tr("The picture is on the clipboard."));
}

}  // namespace memwall::gui
