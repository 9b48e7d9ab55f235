#include "sim/engine/eviction_order.h"

#include <cassert>

namespace memwall {

EvictionOrder::EvictionOrder(std::size_t storages) : entries_(storages + 1) {
  entries_[end()].previous = entries_[end()].next = end();
}

void EvictionOrder::append(StorageId storage) {
  Entry& entry = entries_[storage];
  entry.last_use = ++uses_;
  entry.where = Where::listed;
  entry.previous = entries_[end()].previous;
  entry.next = end();
  entries_[entry.previous].next = storage;
  entries_[end()].previous = storage;
}

void EvictionOrder::take_out(StorageId storage) {
  Entry& entry = entries_[storage];
  if (entry.where == Where::listed) {
    entries_[entry.previous].next = entry.next;
    entries_[entry.next].previous = entry.previous;
  } else if (entry.where == Where::returned) {
    returned_.erase({entry.last_use, storage});
  }
}

void EvictionOrder::enter(StorageId storage) {
  assert(entries_[storage].where == Where::out);
  append(storage);
}

void EvictionOrder::leave(StorageId storage) {
  assert(entries_[storage].where != Where::out);
  take_out(storage);
  entries_[storage].where = Where::out;
}

void EvictionOrder::use(StorageId storage) {
  if (entries_[storage].where == Where::out) return;
  take_out(storage);
  append(storage);
}

void EvictionOrder::unpin(StorageId storage) {
  Entry& entry = entries_[storage];
  assert(entry.pins > 0);
  if (--entry.pins > 0 || entry.where != Where::aside) return;
  entry.where = Where::returned;
  returned_.insert({entry.last_use, storage});
}

void EvictionOrder::set_aside(StorageId storage) {
  take_out(storage);
  entries_[storage].where = Where::aside;
}

void EvictionOrder::walk(const std::function<bool(StorageId)>& visit) {
  StorageId listed = entries_[end()].next;
  auto returned = returned_.begin();
  while (listed != end() || returned != returned_.end()) {
    const bool from_list =
        returned == returned_.end() || (listed != end() && entries_[listed].last_use < returned->first);
    StorageId storage = listed;
    if (from_list) {
      listed = entries_[listed].next;
    } else {
      storage = returned->second;
      ++returned;
    }
    ++steps_;
    if (pinned(storage)) {
      set_aside(storage);
    } else if (!visit(storage)) {
      return;
    }
  }
}

}  // namespace memwall
