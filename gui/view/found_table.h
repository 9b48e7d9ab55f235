// What a search found, as two tables: ops and storages. Facts of a row are read when it is shown.
#pragma once

#include <unordered_map>
#include <vector>

#include "gui/model/op_search.h"
#include "gui/view/value_table.h"

namespace memwall::gui {

struct FoundOp {
  std::string name;
  OpKind kind = OpKind::mark;
  Time begin{};
  Duration time{};
};
// Reads it of the file. Throws InputError.
FoundOp facts_of(const OpenRun& run, OpRef op);

class FoundOpsTable : public ValueTable {
 public:
  enum Column : int { name, kind, when, duration, which_run };

  explicit FoundOpsTable(QObject* parent = nullptr);
  // `runs`: names and ends of the open runs.
  void show(std::vector<OpRef> ops, std::vector<std::pair<QString, Time>> runs);
  const std::vector<OpRef>& ops() const { return ops_; }
  std::vector<std::size_t> unknown_of_lines(int first, int last) const;  // rows without facts
  void add_facts(const std::vector<std::pair<std::size_t, FoundOp>>& facts);

  std::size_t rows() const override { return ops_.size(); }
  QString text(std::size_t row, int column) const override;
  std::optional<QColor> swatch(std::size_t row, int column) const override;

 private:
  std::vector<OpRef> ops_;
  std::vector<std::pair<QString, Time>> runs_;
  std::unordered_map<std::size_t, FoundOp> facts_;  // by row
};

struct FoundStorage {
  std::string name, module;
  StorageKind kind = StorageKind::unknown;
  std::optional<Bytes> bytes;  // nothing before the history is loaded
};
FoundStorage facts_of(const OpenRun& run, StorageRef storage);

class FoundStoragesTable : public ValueTable {
 public:
  enum Column : int { name, kind, bytes, module, which_run };

  explicit FoundStoragesTable(QObject* parent = nullptr);
  void show(std::vector<StorageRef> storages, std::vector<std::pair<QString, Time>> runs);
  const std::vector<StorageRef>& storages() const { return storages_; }
  std::vector<std::size_t> unknown_of_lines(int first, int last) const;
  void add_facts(const std::vector<std::pair<std::size_t, FoundStorage>>& facts);

  std::size_t rows() const override { return storages_.size(); }
  QString text(std::size_t row, int column) const override;
  std::optional<QColor> swatch(std::size_t row, int column) const override;

 private:
  std::vector<StorageRef> storages_;
  std::vector<std::pair<QString, Time>> runs_;
  std::unordered_map<std::size_t, FoundStorage> facts_;
};

}  // namespace memwall::gui
