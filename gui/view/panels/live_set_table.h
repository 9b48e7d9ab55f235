// What lives in a tier at an instant, as a table: one row per storage, names filled in as they are
// read.
//
// Names cost reads of the file, so the table starts without, says which are missing, and takes them
// in batches. While names are missing a filter or an order by name tells of what is known so far.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "gui/model/live_set.h"
#include "gui/model/storage_name.h"
#include "gui/view/panels/value_table.h"

namespace memwall::gui {

struct NamedStorage {
  StorageId storage = kNoStorage;
  StorageName name;
};

class LiveSetTable : public ValueTable {
 public:
  enum Column : int { name, kind, bytes, module, phase, since, until };

  explicit LiveSetTable(QObject* parent = nullptr);

  // Names that are known stay. `end`: of the run, which chooses the unit of instants.
  void show(std::shared_ptr<const TierLiveSet> set, Time end);
  const TierLiveSet& set() const { return *set_; }
  void forget_names();  // another run
  bool knows(std::size_t row) const { return known(row) != nullptr; }
  void add_names(const std::vector<NamedStorage>& names);

  // Storages without a name: of lines of the view, of the `count` largest, or any, at most `most`.
  std::vector<StorageId> unnamed_of_lines(int first, int last) const;
  std::vector<StorageId> unnamed_of_largest(std::size_t count) const;
  std::vector<StorageId> unnamed(std::size_t most) const;
  std::size_t named() const;  // rows whose name is known
  // Is it filtered, or in an order, that depends on names?
  bool needs_names() const {
    return filtered() || sort_column() == name || sort_column() == module || sort_column() == phase;
  }

  std::size_t rows() const override { return set_->rows.size(); }
  QString text(std::size_t row, int column) const override;
  QString plain(std::size_t row, int column) const override;
  std::int64_t key(std::size_t row, int column) const override;
  std::optional<QColor> swatch(std::size_t row, int column) const override;

 protected:
  std::vector<std::int64_t> sort_keys(int column) const override;
  std::vector<bool> matching(const QStringList& words) const override;

 private:
  // Labels and modules repeat: each text is kept once, by number; 0 is "".
  struct Known {
    std::uint32_t label = 0, module = 0;
    Phase phase = Phase::unknown;
  };
  std::uint32_t number_of(const std::string& text);
  const Known* known(std::size_t row) const;

  std::shared_ptr<const TierLiveSet> set_;
  Time end_{};
  std::unordered_map<StorageId, Known> names_;
  std::vector<QString> texts_;
  std::unordered_map<std::string, std::uint32_t> numbers_;
};

}  // namespace memwall::gui
