#include "gui/model/recent_uses.h"

#include <algorithm>

namespace memwall::gui {

std::shared_ptr<const StorageUses> RecentUses::find(StorageId storage) const {
  const std::lock_guard lock(mutex_);
  const auto known = std::find_if(recent_.begin(), recent_.end(), [&](const auto& r) { return r->storage == storage; });
  return known == recent_.end() ? nullptr : *known;
}

std::shared_ptr<const StorageUses> RecentUses::of(const RunSource& source, StorageId storage) const {
  if (auto known = find(storage)) return known;
  StorageUses found{storage, source.uses_of(storage, kMostUses + 1), true};
  found.complete = found.uses.size() <= kMostUses;
  if (!found.complete) found.uses.resize(kMostUses);
  const auto shared = std::make_shared<const StorageUses>(std::move(found));
  const std::lock_guard lock(mutex_);
  recent_.push_front(shared);
  if (recent_.size() > kKept) recent_.pop_back();
  return shared;
}

}  // namespace memwall::gui
