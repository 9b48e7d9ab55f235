// Where the time of a range went, as a table: one row per op, module, phase or kind, and their sum.
#pragma once

#include "gui/model/selection_statistics.h"
#include "gui/view/panels/value_table.h"

namespace memwall::gui {

class StatisticsTable : public ValueTable {
 public:
  enum Column : int { name, count, work, share, call, mean, longest };

  explicit StatisticsTable(QObject* parent = nullptr);
  void show(SelectionStatistics statistics, StatisticsKey key);
  const SelectionStatistics& statistics() const { return statistics_; }
  // The total is the last row.
  bool is_total(std::size_t row) const { return row == statistics_.rows.size(); }
  const StatisticsRow& row(std::size_t row) const { return is_total(row) ? statistics_.total : statistics_.rows[row]; }

  std::size_t rows() const override { return statistics_.rows.empty() ? 0 : statistics_.rows.size() + 1; }
  QString text(std::size_t row, int column) const override;
  QString plain(std::size_t row, int column) const override;
  std::int64_t key(std::size_t row, int column) const override;
  std::optional<QColor> swatch(std::size_t row, int column) const override;

 protected:
  bool has_total() const override { return true; }

 private:
  double share_of_row(std::size_t row) const;
  SelectionStatistics statistics_;
  StatisticsKey key_ = StatisticsKey::op;
};

}  // namespace memwall::gui
