#include "gui/view/panels/bookmark_panel.h"

#include <QHeaderView>
#include <QLabel>
#include <QPushButton>
#include <QTableWidget>
#include <QVBoxLayout>

#include "gui/view/value_text.h"

namespace memwall::gui {

BookmarkPanel::BookmarkPanel(Workspace& workspace, QWidget* parent)
    : QWidget(parent), workspace_(workspace), table_(new QTableWidget(0, 3, this)) {
  setObjectName("bookmarks");
  table_->setObjectName("mark_table");
  table_->setAccessibleName(tr("Marks"));
  table_->setHorizontalHeaderLabels({tr("Mark (double click names it)"), tr("At"), tr("Lasts")});
  table_->horizontalHeader()->setSectionResizeMode(0, QHeaderView::Stretch);
  table_->verticalHeader()->hide();
  table_->setSelectionBehavior(QAbstractItemView::SelectRows);
  auto* remove = new QPushButton(tr("Remove"), this);
  remove->setObjectName("remove");
  auto* hint = new QLabel(tr("M marks the chosen range or the cursor. A click goes there."), this);
  auto* line = new QHBoxLayout;
  line->addWidget(hint, 1);
  line->addWidget(remove);
  auto* layout = new QVBoxLayout(this);
  layout->addWidget(table_);
  layout->addLayout(line);
  connect(remove, &QPushButton::clicked, this, &BookmarkPanel::remove_chosen);
  connect(table_, &QTableWidget::cellClicked, this, [this](int row, int) { go_to(row); });
  connect(table_, &QTableWidget::cellChanged, this, [this](int row, int) { rename(row); });
  connect(&workspace_, &Workspace::bookmarks_changed, this, &BookmarkPanel::show_marks);
  connect(&workspace_, &Workspace::runs_changed, this, &BookmarkPanel::show_marks);
}

void BookmarkPanel::show_marks() {
  filling_ = true;
  const auto& marks = workspace_.state().bookmarks;
  const Time end = workspace_.state().whole().end;
  table_->setRowCount(static_cast<int>(marks.size()));
  for (int row = 0; row < table_->rowCount(); ++row) {
    const Bookmark& mark = marks[static_cast<std::size_t>(row)];
    table_->setItem(row, 0, new QTableWidgetItem(text_of(mark.label)));
    const QString lasts = mark.range.length() > Duration{} ? time_text(mark.range.length()) : QString();
    int column = 1;
    for (const QString& text : {instant_text(mark.range.begin, end), lasts}) {
      auto* item = new QTableWidgetItem(text);
      item->setFlags(item->flags() & ~Qt::ItemIsEditable);
      item->setTextAlignment(Qt::AlignRight | Qt::AlignVCenter);
      table_->setItem(row, column++, item);
    }
  }
  filling_ = false;
}

void BookmarkPanel::rename(int row) {
  auto marks = workspace_.state().bookmarks;
  if (filling_ || static_cast<std::size_t>(row) >= marks.size()) return;
  marks[static_cast<std::size_t>(row)].label = table_->item(row, 0)->text().toStdString();
  workspace_.set_bookmarks(std::move(marks));
}

void BookmarkPanel::go_to(int row) {
  if (static_cast<std::size_t>(row) >= workspace_.state().bookmarks.size()) return;
  const Bookmark mark = workspace_.state().bookmarks[static_cast<std::size_t>(row)];
  if (mark.range.length() > Duration{}) workspace_.set_range(mark.range);
  workspace_.go_to_time(mark.range.begin);
}

void BookmarkPanel::remove_chosen() {
  const auto chosen = table_->selectionModel()->selectedRows();
  if (chosen.isEmpty()) return workspace_.say(tr("Click the mark that is to go first."));
  std::vector<Bookmark> left;
  const auto& marks = workspace_.state().bookmarks;
  for (std::size_t i = 0; i < marks.size(); ++i) {
    if (!table_->selectionModel()->isRowSelected(static_cast<int>(i))) left.push_back(marks[i]);
  }
  workspace_.set_bookmarks(std::move(left));
}

}  // namespace memwall::gui
