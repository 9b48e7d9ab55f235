// Two runs op by op, as a table: all ops of one name that were added, removed or changed are a row.
#pragma once

#include <memory>

#include "gui/model/run_comparison.h"
#include "gui/view/panels/value_table.h"

namespace memwall::gui {

class DifferenceTable : public ValueTable {
 public:
  enum Column : int { change, name, operator_name, kind, phase, count, base, other, difference };

  explicit DifferenceTable(QObject* parent = nullptr);
  // Rows in the order of comparison.ops: by the size of the difference. Null: none.
  void show(std::shared_ptr<const RunComparison> comparison);

  std::size_t rows() const override { return comparison_ ? comparison_->comparison.ops.size() : 0; }
  QString text(std::size_t row, int column) const override;
  QString plain(std::size_t row, int column) const override;
  std::int64_t key(std::size_t row, int column) const override;
  std::optional<QColor> swatch(std::size_t row, int column) const override;

 private:
  std::shared_ptr<const RunComparison> comparison_;
};

// A table of a few rows whose cells are at hand.
struct ValueCell {
  QString text;
  std::int64_t key = 0;
  QString plain;  // "" = text
};

class CellTable : public ValueTable {
 public:
  using ValueTable::ValueTable;
  void show(std::vector<std::vector<ValueCell>> cells);

  std::size_t rows() const override { return cells_.size(); }
  QString text(std::size_t row, int column) const override { return at(row, column).text; }
  QString plain(std::size_t row, int column) const override;
  std::int64_t key(std::size_t row, int column) const override { return at(row, column).key; }

 private:
  const ValueCell& at(std::size_t row, int column) const { return cells_[row][static_cast<std::size_t>(column)]; }
  std::vector<std::vector<ValueCell>> cells_;
};

// Peaks of the tiers, and what the links carried: base, other, difference. Tiers and links that neither run used are
// left out.
std::vector<TableColumn> tier_difference_columns();
std::vector<std::vector<ValueCell>> tier_difference_cells(const Comparison& comparison);
std::vector<TableColumn> link_difference_columns();
std::vector<std::vector<ValueCell>> link_difference_cells(const Comparison& comparison);

}  // namespace memwall::gui
