// What a search found, as two tables: ops and storages. Facts of a row are read when it is shown.
#pragma once

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

#include "gui/model/op_search.h"
#include "gui/view/panels/value_table.h"

namespace memwall::gui {

struct FoundOp {
  std::string name;
  OpKind kind = OpKind::mark;
  Time begin{};
  Duration time{};
};
// Reads it of the file. Throws InputError.
FoundOp facts_of(const OpenRun& run, OpRef op);

struct FoundStorage {
  std::string name, module;
  StorageKind kind = StorageKind::unknown;
  std::optional<Bytes> bytes;  // nothing before the history is loaded
};
FoundStorage facts_of(const OpenRun& run, StorageRef storage);

// What both tables share: rows that are shown at once, and facts of each that come when somebody looks.
template <class Ref, class Facts>
class FoundTable : public ValueTable {
 public:
  using ValueTable::ValueTable;
  // `runs`: names and ends of the open runs.
  void show(std::vector<Ref> found, std::vector<std::pair<QString, Time>> runs) {
    change_rows([&] {
      found_ = std::move(found);
      runs_ = std::move(runs);
      facts_.clear();
    });
  }
  const std::vector<Ref>& found() const { return found_; }
  // Rows without facts among these lines.
  std::vector<std::size_t> unknown_of_lines(int first, int last) const {
    std::vector<std::size_t> rows;
    for (int line = std::max(0, first); line <= last && line < lines(); ++line)
      if (!facts_.contains(row_at(line))) rows.push_back(row_at(line));
    return rows;
  }
  void add_facts(const std::vector<std::pair<std::size_t, Facts>>& facts) {
    facts_.insert(facts.begin(), facts.end());
    rows_know_more();
  }
  std::size_t rows() const override { return found_.size(); }

 protected:
  // Null where they are not known yet.
  const Facts* facts(std::size_t row) const {
    const auto found = facts_.find(row);
    return found == facts_.end() ? nullptr : &found->second;
  }
  const Ref& ref(std::size_t row) const { return found_[row]; }
  QString run_name(std::size_t row) const { return runs_.size() > 1 ? runs_[found_[row].run].first : QString(); }
  Time run_end(std::size_t row) const { return runs_[found_[row].run].second; }

 private:
  std::vector<Ref> found_;
  std::vector<std::pair<QString, Time>> runs_;
  std::unordered_map<std::size_t, Facts> facts_;  // by row
};

class FoundOpsTable : public FoundTable<OpRef, FoundOp> {
 public:
  enum Column : int { name, kind, when, duration, which_run };

  explicit FoundOpsTable(QObject* parent = nullptr);
  QString text(std::size_t row, int column) const override;
  std::optional<QColor> swatch(std::size_t row, int column) const override;
};

class FoundStoragesTable : public FoundTable<StorageRef, FoundStorage> {
 public:
  enum Column : int { name, kind, bytes, module, which_run };

  explicit FoundStoragesTable(QObject* parent = nullptr);
  QString text(std::size_t row, int column) const override;
  std::optional<QColor> swatch(std::size_t row, int column) const override;
};

}  // namespace memwall::gui
