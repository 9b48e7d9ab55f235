// The uses of the storages that were asked for last. A file is searched from end to end for them, which takes some
// 40 ms per million ops: no frame's business. Safe to use from several threads.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <vector>

#include "traces/run/run_source.h"

namespace memwall::gui {

struct StorageUses {
  StorageId storage = kNoStorage;
  std::vector<StorageUse> uses;  // ascending in op
  bool complete = true;          // false: there are more than kMostUses
};
inline constexpr std::size_t kMostUses = 4096;

class RecentUses {
 public:
  // Null if they are not in memory.
  std::shared_ptr<const StorageUses> find(StorageId storage) const;
  // Reads them where they are not. Throws InputError.
  std::shared_ptr<const StorageUses> of(const RunSource& source, StorageId storage) const;

 private:
  static constexpr std::size_t kKept = 8;
  mutable std::mutex mutex_;
  mutable std::list<std::shared_ptr<const StorageUses>> recent_;  // newest first
};

}  // namespace memwall::gui
