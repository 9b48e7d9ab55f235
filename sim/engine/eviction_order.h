// In which order storages of the device may leave it: the least recently used first, those in use not at all.
//
// A walk over the order costs what it looks at, whatever else lives there: what it meets pinned is put aside until it
// is pinned no more, so that later walks do not meet it again. Entering, leaving and use are constant; what was put
// aside comes back in logarithmic time. The order is that of the last uses, as if nothing were ever put aside.
//
// Storages of several devices are in an order of their own for each: a walk meets those of one.
//
// Internal to sim/.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <utility>
#include <vector>

#include "sim/trace/storage.h"

namespace memwall {

class EvictionOrder {
 public:
  // Of storages 0 to `storages` - 1, none of which is there yet. Every function REQUIRES a storage of these.
  explicit EvictionOrder(std::size_t storages) : EvictionOrder(std::vector<std::uint16_t>(storages), 1) {}
  // Likewise; `device_of`: by storage, each less than `devices`.
  EvictionOrder(const std::vector<std::uint16_t>& device_of, std::size_t devices);

  // The storage is there, and used now. REQUIRES: it is not there.
  void enter(StorageId storage);
  // REQUIRES: it is there.
  void leave(StorageId storage);
  // It is used now. Nothing happens where it is not there.
  void use(StorageId storage);
  // Pins are counted, whether the storage is there or not; one with any is not walked over.
  void pin(StorageId storage) { ++entries_[storage].pins; }
  void unpin(StorageId storage);
  bool pinned(StorageId storage) const { return entries_[storage].pins > 0; }

  // What is there on the device without a pin, least recently used first, until `visit` answers false. REQUIRES:
  // `visit` changes nothing here.
  void walk(const std::function<bool(StorageId)>& visit, std::uint16_t device = 0);
  // Storages that walks have looked at so far.
  std::uint64_t steps() const { return steps_; }

 private:
  enum class Where : std::uint8_t {
    out,
    listed,   // in the list; pinned or not
    aside,    // there and pinned, met by a walk: in no list
    returned  // was aside and lost its last pin since: in the set, as its place in the list is taken
  };
  struct Entry {
    std::uint64_t last_use = 0;  // ascending with time, never twice
    StorageId previous = 0, next = 0;
    std::uint32_t pins = 0;
    std::uint16_t device = 0;
    Where where = Where::out;
  };

  // Of a device's list, before its first too.
  StorageId end(std::uint16_t device) const { return static_cast<StorageId>(storages_ + device); }
  void append(StorageId storage);
  void take_out(StorageId storage);
  void set_aside(StorageId storage);

  const std::size_t storages_;
  std::vector<Entry> entries_;                                           // and one per device that ends its list
  std::vector<std::set<std::pair<std::uint64_t, StorageId>>> returned_;  // by device; by last use
  std::uint64_t uses_ = 0, steps_ = 0;
};

}  // namespace memwall
