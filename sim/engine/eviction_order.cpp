#include "sim/engine/eviction_order.h"

#include <cassert>

namespace memwall {

EvictionOrder::EvictionOrder(const std::vector<std::uint16_t>& device_of, std::size_t devices)
    : storages_(device_of.size()), entries_(storages_ + devices), returned_(devices) {
  for (std::size_t s = 0; s < storages_; ++s) entries_[s].device = device_of[s];
  for (std::uint16_t device = 0; device < devices; ++device)
    entries_[end(device)].previous = entries_[end(device)].next = end(device);
}

void EvictionOrder::append(StorageId storage) {
  Entry& entry = entries_[storage];
  entry.last_use = ++uses_;
  entry.where = Where::listed;
  const StorageId last = end(entry.device);
  entry.previous = entries_[last].previous;
  entry.next = last;
  entries_[entry.previous].next = storage;
  entries_[last].previous = storage;
}

void EvictionOrder::take_out(StorageId storage) {
  Entry& entry = entries_[storage];
  if (entry.where == Where::listed) {
    entries_[entry.previous].next = entry.next;
    entries_[entry.next].previous = entry.previous;
  } else if (entry.where == Where::returned) {
    returned_[entry.device].erase({entry.last_use, storage});
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
  returned_[entry.device].insert({entry.last_use, storage});
}

void EvictionOrder::set_aside(StorageId storage) {
  take_out(storage);
  entries_[storage].where = Where::aside;
}

void EvictionOrder::walk(const std::function<bool(StorageId)>& visit, std::uint16_t device) {
  const StorageId last = end(device);
  const auto none = returned_[device].end();
  StorageId listed = entries_[last].next;
  auto returned = returned_[device].begin();
  while (listed != last || returned != none) {
    const bool from_list = returned == none || (listed != last && entries_[listed].last_use < returned->first);
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
