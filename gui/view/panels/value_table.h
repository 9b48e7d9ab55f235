// A table of values: sorted by value, not by text; filtered by words; copied and exported as what
// is shown. The base of the panels' tables.
//
// A table keeps four bytes per row (the order in which rows are shown). Texts are made for the cells
// that a view asks for, so that a table of a million rows is there at once.
#pragma once

#include <QAbstractTableModel>
#include <QColor>
#include <QString>
#include <QStringList>

#include <cstdint>
#include <optional>
#include <vector>

namespace memwall::gui {

struct TableColumn {
  QString title;
  bool number = false;  // right-aligned, sorted by key(), largest first when its title is clicked
  QString meaning;      // shown when the pointer rests on the title
};

class ValueTable : public QAbstractTableModel {
 public:
  explicit ValueTable(std::vector<TableColumn> columns, QObject* parent = nullptr);

  // Rows in the order of the table (0 to rows() - 1, as the owner numbers them), whatever is shown.
  virtual std::size_t rows() const = 0;
  virtual QString text(std::size_t row, int column) const = 0;
  // Of columns of numbers: what they are sorted by.
  virtual std::int64_t key(std::size_t row, int column) const;
  // For other programs: seconds and bytes without units.
  virtual QString plain(std::size_t row, int column) const { return text(row, column); }
  virtual std::optional<QColor> swatch(std::size_t row, int column) const;

  // Shows rows that hold all words, letters of either case; "" shows all.
  void filter(const QString& words);
  bool filtered() const { return !words_.isEmpty(); }
  int sort_column() const { return sort_column_; }
  // The row of the table that stands in a line of the view, and back; -1: not shown. REQUIRES: line < lines().
  std::size_t row_at(int line) const { return order_[static_cast<std::size_t>(line)]; }
  int line_of(std::size_t row) const;
  int lines() const { return static_cast<int>(order_.size()); }

  // Lines with tabs between cells, the titles first; of all that is shown, or of some lines.
  QString to_text(const std::vector<int>& lines) const;
  QString to_text() const;
  QString to_csv() const;  // RFC 4180, plain numbers, all that is shown

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;
  void sort(int column, Qt::SortOrder order) override;

 protected:
  // One key per row. Base: key() of columns of numbers, the rank of the text of others.
  virtual std::vector<std::int64_t> sort_keys(int column) const;
  // Which rows hold all of `words` (lower case). Base: in any column.
  virtual std::vector<bool> matching(const QStringList& words) const;
  // The last row of the table always stands last: a sum.
  virtual bool has_total() const { return false; }
  // Call around a change of the rows themselves: sorts and filters anew.
  template <class Change>
  void change_rows(Change&& change) {
    beginResetModel();
    change();
    arrange();
    endResetModel();
  }
  // Rows are the same, what is known of them is not.
  void rows_know_more();

 private:
  void arrange();
  QString line_text(int line, bool plain_numbers, QChar between) const;

  std::vector<TableColumn> columns_;
  std::vector<std::uint32_t> order_;
  QStringList words_;
  int sort_column_ = -1;
  Qt::SortOrder sort_order_ = Qt::AscendingOrder;
};

}  // namespace memwall::gui
