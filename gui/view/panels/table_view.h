// A table on the screen: rows are chosen as a whole, titles sort, Ctrl+C copies, a menu exports CSV.
#pragma once

#include <QTableView>

#include "gui/view/panels/value_table.h"

namespace memwall::gui {

class TableView : public QTableView {
  Q_OBJECT
 public:
  // Shows `table`, which it does not own. `name`: what the table is, for those who cannot see it, and for the name of
  // an exported file.
  TableView(ValueTable& table, const QString& name, QWidget* parent = nullptr);

  // The row of the table on which the keyboard stands; nothing where it stands nowhere.
  std::optional<std::size_t> current_row() const;
  void choose(std::size_t row);  // selects it and scrolls to it, without chosen()
  // Of what is selected, else of all that is shown.
  void copy();
  void export_csv();  // asks where
  // Throws UsageError.
  void write_csv(const QString& path) const;
  // As wide as what stands in the first rows, within limits; `wide` takes what is left, and enough to read in any case.
  void fit_columns(int wide);

 Q_SIGNALS:
  void chosen(std::size_t row);       // clicked, or moved to with the keyboard
  void entered_row(std::size_t row);  // double click, or Enter
  void lines_shown(int first, int last);
  void failed(const QString& sentence);

 protected:
  void keyPressEvent(QKeyEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void contextMenuEvent(QContextMenuEvent* event) override;
  void currentChanged(const QModelIndex& current, const QModelIndex& previous) override;

 private:
  void tell_lines_shown();
  ValueTable& table_;
  QString name_;
  bool choosing_ = false;
};

}  // namespace memwall::gui
