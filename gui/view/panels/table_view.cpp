#include "gui/view/panels/table_view.h"

#include <QApplication>
#include <QClipboard>
#include <QContextMenuEvent>
#include <QFileDialog>
#include <QHeaderView>
#include <QKeyEvent>
#include <QMenu>
#include <QScrollBar>

#include <algorithm>

#include "sim/files/file_writer.h"
#include "sim/error.h"

namespace memwall::gui {

TableView::TableView(ValueTable& table, const QString& name, QWidget* parent)
    : QTableView(parent), table_(table), name_(name) {
  setModel(&table);
  setAccessibleName(name);
  setSelectionBehavior(QAbstractItemView::SelectRows);
  setSelectionMode(QAbstractItemView::ExtendedSelection);
  setAlternatingRowColors(true);
  setShowGrid(false);
  setWordWrap(false);
  setTabKeyNavigation(false);  // Tab leaves the table: its cells are reached with the arrows
  setHorizontalScrollMode(QAbstractItemView::ScrollPerPixel);
  verticalHeader()->hide();
  verticalHeader()->setMinimumSectionSize(0);
  verticalHeader()->setSectionResizeMode(QHeaderView::Fixed);
  verticalHeader()->setDefaultSectionSize(fontMetrics().height() + 4);
  horizontalHeader()->setHighlightSections(false);
  horizontalHeader()->setResizeContentsPrecision(100);
  horizontalHeader()->setSortIndicator(-1, Qt::AscendingOrder);  // as the table stands, until a title is clicked
  horizontalHeader()->setSortIndicatorClearable(true);
  setSortingEnabled(true);
  connect(verticalScrollBar(), &QScrollBar::valueChanged, this, [this] { tell_lines_shown(); });
  connect(
      &table, &QAbstractItemModel::modelReset, this, [this] { tell_lines_shown(); }, Qt::QueuedConnection);
  connect(&table, &QAbstractItemModel::layoutChanged, this, [this] { tell_lines_shown(); });
  connect(this, &QAbstractItemView::activated, this,
          [this](const QModelIndex& index) { Q_EMIT entered_row(table_.row_at(index.row())); });
}

std::optional<std::size_t> TableView::current_row() const {
  if (!currentIndex().isValid()) return std::nullopt;
  return table_.row_at(currentIndex().row());
}

void TableView::choose(std::size_t row) {
  const int line = table_.line_of(row);
  if (line < 0) return;
  choosing_ = true;
  setCurrentIndex(table_.index(line, 0));
  scrollTo(table_.index(line, 0));
  choosing_ = false;
}

void TableView::copy() {
  std::vector<int> lines;
  for (const QModelIndex& index : selectionModel()->selectedRows()) lines.push_back(index.row());
  std::sort(lines.begin(), lines.end());
  QApplication::clipboard()->setText(lines.empty() ? table_.to_text() : table_.to_text(lines));
}

void TableView::export_csv() {
  QString file = name_.toLower();
  const QString path =
      QFileDialog::getSaveFileName(this, tr("Export as CSV"), file.replace(QLatin1Char(' '), QLatin1Char('_')) + ".csv",
                                   tr("CSV (*.csv);;All files (*)"));
  if (path.isEmpty()) return;
  try {
    write_csv(path);
  } catch (const UsageError& error) {
    Q_EMIT failed(QString::fromUtf8(error.what()));
  }
}

void TableView::write_csv(const QString& path) const {
  const std::string text = table_.to_csv().toStdString();
  FileWriter file(path.toStdString());
  file.append(text);
  file.commit();
}

void TableView::fit_columns(int wide) {
  constexpr int kMost = 220, kLeastWide = 180;  // longer names are read in the tip, or in a wider column
  int others = 0;
  for (int column = 0; column < table_.columnCount(); ++column) {
    resizeColumnToContents(column);
    setColumnWidth(column, std::min(columnWidth(column), kMost));
    if (column != wide && !isColumnHidden(column)) others += columnWidth(column);
  }
  setColumnWidth(wide, std::max(kLeastWide, viewport()->width() - others));
  horizontalHeader()->setMinimumSectionSize(24);
}

void TableView::keyPressEvent(QKeyEvent* event) {
  if (event->matches(QKeySequence::Copy)) {
    copy();
    event->accept();
    return;
  }
  // The style decides whether Enter activates a cell; here it always does.
  if ((event->key() == Qt::Key_Return || event->key() == Qt::Key_Enter) && event->modifiers() == Qt::NoModifier) {
    if (const auto row = current_row()) Q_EMIT entered_row(*row);
    event->accept();
    return;
  }
  QTableView::keyPressEvent(event);
}

void TableView::resizeEvent(QResizeEvent* event) {
  QTableView::resizeEvent(event);
  tell_lines_shown();
}

void TableView::contextMenuEvent(QContextMenuEvent* event) {
  QMenu menu(this);
  menu.addAction(tr("Copy"), this, [this] { copy(); });
  menu.addAction(tr("Export as CSV…"), this, [this] { export_csv(); });
  menu.exec(event->globalPos());
}

void TableView::currentChanged(const QModelIndex& current, const QModelIndex& previous) {
  QTableView::currentChanged(current, previous);
  if (!choosing_ && current.isValid() && current.row() != previous.row()) Q_EMIT chosen(table_.row_at(current.row()));
}

void TableView::tell_lines_shown() {
  if (table_.lines() == 0) return;
  const int first = std::max(0, rowAt(0));
  const int last = rowAt(viewport()->height() - 1);
  Q_EMIT lines_shown(first, last < 0 ? table_.lines() - 1 : last);
}

}  // namespace memwall::gui
