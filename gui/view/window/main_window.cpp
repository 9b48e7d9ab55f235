#include "gui/view/window/main_window.h"

#include <QApplication>
#include <QCloseEvent>
#include <QDragEnterEvent>
#include <QFileDialog>
#include <QFileInfo>
#include <QLabel>
#include <QMessageBox>
#include <QMimeData>
#include <QStackedWidget>
#include <QStatusBar>

#include "gui/view/canvas/canvas_widget.h"
#include "gui/view/canvas/navigation_keys.h"
#include "gui/view/window/progress_line.h"
#include "gui/view/value_text.h"
#include "gui/view/window/viewer_page.h"
#include "gui/view/window/welcome_page.h"

namespace memwall::gui {

MainWindow::MainWindow(SessionStore store, QWidget* parent)
    : QMainWindow(parent),
      store_(std::move(store)),
      stack_(new QStackedWidget(this)),
      welcome_(new WelcomePage(this)),
      page_(new ViewerPage(workspace_, this)),
      message_(new QLabel(this)),
      selection_(new QLabel(this)),
      pointer_(new QLabel(this)) {
  setObjectName("viewer");
  setAcceptDrops(true);
  setDockOptions(AnimatedDocks | AllowNestedDocks | AllowTabbedDocks);
  stack_->addWidget(welcome_);
  stack_->addWidget(page_);
  setCentralWidget(stack_);
  new NavigationKeys(workspace_, page_->canvas(), this);
  message_->setObjectName("message");
  message_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  // A long line must not make the window wider.
  message_->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
  statusBar()->addWidget(message_, 1);
  statusBar()->addPermanentWidget(new ProgressLine(opener_.background(), this));
  statusBar()->addPermanentWidget(new ProgressLine(workspace_.background(), this));
  statusBar()->addPermanentWidget(selection_);
  statusBar()->addPermanentWidget(pointer_);

  QString complaint;
  program_ = store_.program(complaint);
  make_panels();
  make_commands();
  make_menus();
  choose_theme(program_.theme);
  workspace_.show_legend(program_.legend);
  resize(1400, 900);
  if (!program_.geometry.isEmpty()) restoreGeometry(program_.geometry);
  arrange_panels();
  show_panels_for_runs();

  connect(&opener_, &RunOpener::opened, this, &MainWindow::take);
  connect(&opener_, &RunOpener::failed, this, &MainWindow::show_problem);
  connect(&opener_.background(), &Background::finished, welcome_, [this] { welcome_->set_opening({}); });
  connect(&workspace_, &Workspace::problem, this, &MainWindow::show_problem);
  connect(&workspace_.background(), &Background::failed, this,
          [this](const QString&, const QString& sentence) { show_problem(sentence); });
  connect(&workspace_, &Workspace::said, this, [this](const QString& text) {
    message_->setText(text);
    message_->setToolTip(text);
  });
  connect(&workspace_, &Workspace::selection_changed, this, &MainWindow::show_selection);
  connect(&workspace_, &Workspace::viewport_changed, this, &MainWindow::show_selection);
  connect(welcome_, &WelcomePage::open_wanted, this, &MainWindow::open_dialog);
  connect(welcome_, &WelcomePage::file_wanted, this, [this](const QString& path) { open({path}); });
  connect(&page_->canvas(), &CanvasWidget::pointed_at, pointer_, &QLabel::setText);
  connect(&page_->canvas(), &CanvasWidget::menu_wanted, this, &MainWindow::show_menu_of);
  connect(&page_->canvas(), &CanvasWidget::bookmark_opened, this, &MainWindow::ask_bookmark_name);
  show_recent();
  show_title();
  if (!complaint.isEmpty()) workspace_.say(complaint);
}

MainWindow::~MainWindow() {
  // Nothing that still runs may tell a window that is half gone.
  opener_.background().cancel_all();
  workspace_.background().cancel_all();
  workspace_.disconnect();
}

// ---------------------------------------------------------------- opening

void MainWindow::open(const QStringList& paths) {
  if (paths.isEmpty()) return;
  if (paths.size() > 2) {
    return show_problem(tr("%1 files were given: the viewer opens one run, or compares two.").arg(paths.size()));
  }
  reported_problems_.clear();
  opener_.open(paths);
  // Of what is under way the page says more than that nothing is open.
  QStringList names;
  for (const QString& path : paths) names.append(QFileInfo(path).fileName());
  welcome_->set_opening(names.join(tr(" and ")));
}

void MainWindow::wait() {
  while (!opener_.background().idle() || !workspace_.background().idle()) {
    opener_.background().wait();
    workspace_.background().wait();
  }
}

QStringList MainWindow::open_paths() const {
  QStringList paths;
  for (const OpenRun& run : workspace_.state().runs) paths.append(QString::fromStdString(run.path));
  return paths;
}

void MainWindow::take(const std::vector<OpenRun>& runs) {
  if (workspace_.has_run()) remember();
  // The same run with or without another: people go on looking at the same place.
  const bool same = workspace_.has_run() && !runs.empty() && runs[0].source == workspace_.state().runs[0].source;
  const TimeRange visible = workspace_.state().viewport.visible();
  const Selection selection = workspace_.state().selection;
  workspace_.say({});
  workspace_.open(runs);
  const QStringList paths = open_paths();
  stack_->setCurrentWidget(runs.empty() ? static_cast<QWidget*>(welcome_) : page_);
  show_title();
  if (runs.empty()) return show_panels_for_runs();
  for (const QString& path : paths) {
    const QString absolute = QFileInfo(path).absoluteFilePath();
    program_.recent.removeAll(absolute);
    program_.recent.prepend(absolute);
  }
  while (program_.recent.size() > kMostRecent) program_.recent.removeLast();
  show_recent();
  restore(paths);
  if (same) {
    workspace_.change_viewport([&](Viewport& viewport) { viewport.show(visible); });
    if (selection.op && selection.op->run == 0) workspace_.select(selection.op);
    workspace_.set_cursor(selection.cursor);
  } else if (aside_ && runs.size() == 1) {
    aside_.reset();
  }
  page_->canvas().setFocus();
}

void MainWindow::restore(const QStringList& paths) {
  QString complaint;
  const auto session = store_.file(paths, complaint);
  if (!complaint.isEmpty()) workspace_.say(complaint);
  if (session) {
    workspace_.change_rows([&](RowList& rows) { arrange(rows, *session); });
    if (session->visible) {
      workspace_.change_viewport([&](Viewport& viewport) { viewport.show(*session->visible); });
    }
    workspace_.scroll_to(session->scroll);
    workspace_.set_bookmarks(session->bookmarks);
    if (session->show_path) workspace_.show_path(true);
  }
  const QByteArray panels = session && !session->panels.isEmpty() ? session->panels : program_.panels;
  if (!panels.isEmpty()) restoreState(panels);
  show_panels_for_runs();
  if (panels.isEmpty()) raise_first_panels();
}

void MainWindow::remember() {
  program_.geometry = saveGeometry();
  program_.legend = workspace_.state().show_legend;
  QString problem;
  if (workspace_.has_run()) {
    program_.panels = saveState();
    FileSession session = session_of(workspace_.state());
    session.panels = program_.panels;
    problem = store_.keep(open_paths(), session);
  }
  const QString other = store_.keep(program_);
  if (!other.isEmpty()) problem = other;
  if (!problem.isEmpty()) workspace_.say(problem);
}

void MainWindow::open_dialog() {
  const QString folder = program_.recent.isEmpty() ? QString() : QFileInfo(program_.recent[0]).path();
  open(QFileDialog::getOpenFileNames(this, tr("Open one run, or two to compare"), folder,
                                     tr("Runs (*.h5);;All files (*)")));
}

void MainWindow::compare() {
  const auto& runs = workspace_.state().runs;
  if (runs.empty()) return open_dialog();
  if (runs.size() == 2) {
    aside_ = runs[1];
    const OpenRun first = runs[0];
    take({first});
    return workspace_.say(tr("The second run is put aside; C brings it back."));
  }
  if (aside_) {
    const OpenRun first = runs[0], second = *std::exchange(aside_, std::nullopt);
    return take({first, second});
  }
  const QString folder = QFileInfo(open_paths()[0]).path();
  const QString path =
      QFileDialog::getOpenFileName(this, tr("Compare with a second run"), folder, tr("Runs (*.h5);;All files (*)"));
  if (!path.isEmpty()) opener_.open_beside(runs[0], path);
}

void MainWindow::close_runs() {
  aside_.reset();
  take({});
}

// ---------------------------------------------------------------- what the window says

void MainWindow::show_title() {
  QStringList names;
  for (const OpenRun& run : workspace_.state().runs) names.append(text_of(run.title()));
  const QString program = tr("memwall viewer");
  setWindowTitle(names.isEmpty() ? program : names.join(tr(" against ")) + " – " + program);
}

void MainWindow::show_selection() {
  const CanvasState& state = workspace_.state();
  if (state.runs.empty()) return selection_->clear();
  QString text = tr("visible: %1").arg(time_text(state.viewport.visible().length()));
  if (state.selection.range) text += tr(", chosen: %1").arg(time_text(state.selection.range->length()));
  if (state.selection.cursor) text += tr(", cursor: %1").arg(instant_text(*state.selection.cursor, state.whole().end));
  selection_->setText(text);
}

void MainWindow::show_problem(const QString& sentence) {
  if (!reported_problems_.insert(sentence).second) return;
  auto* box = new QMessageBox(QMessageBox::Warning, tr("memwall viewer"), sentence, QMessageBox::Ok, this);
  box->setObjectName("problem");
  box->setTextFormat(Qt::PlainText);
  box->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
  box->setAttribute(Qt::WA_DeleteOnClose);
  connect(box, &QMessageBox::finished, this, [this] { page_->canvas().setFocus(); });
  box->open();
}

// ---------------------------------------------------------------- events

void MainWindow::closeEvent(QCloseEvent* event) {
  remember();
  event->accept();
}

void MainWindow::dragEnterEvent(QDragEnterEvent* event) {
  if (event->mimeData()->hasUrls()) event->acceptProposedAction();
}

void MainWindow::dropEvent(QDropEvent* event) {
  QStringList paths;
  for (const QUrl& url : event->mimeData()->urls()) {
    if (!url.isLocalFile()) return show_problem(tr("%1 is no file of this machine.").arg(url.toString()));
    paths.append(url.toLocalFile());
  }
  event->acceptProposedAction();
  open(paths);
}

}  // namespace memwall::gui
