// From the address of a block to its number. Open addressing with linear probing:
// a caching allocator asks at every free, and a node per block would cost more than
// the rest of the call.
//
// REQUIRES: addresses are multiples of 512 and not 0; an address is in the table at most once.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/memory/allocator.h"

namespace memwall {

class AddressTable {
 public:
  static constexpr std::uint32_t kAbsent = 0xffffffff;

  AddressTable() : slots_(64), mask_(63) {}

  void insert(Address address, std::uint32_t block) {
    if (++count_ * 2 > slots_.size()) grow();
    place({address, block});
  }

  std::uint32_t find(Address address) const {
    for (std::size_t i = home(address);; i = (i + 1) & mask_) {
      if (slots_[i].address == address) return slots_[i].block;
      if (slots_[i].address == 0) return kAbsent;
    }
  }

  // REQUIRES: the address is in the table.
  void erase(Address address) {
    std::size_t hole = home(address);
    while (slots_[hole].address != address) hole = (hole + 1) & mask_;
    // Close the hole with the next entry that may stand there, so that no tombstones pile up.
    for (std::size_t i = (hole + 1) & mask_; slots_[i].address != 0; i = (i + 1) & mask_) {
      const std::size_t from_home = (i - home(slots_[i].address)) & mask_;
      if (from_home < ((i - hole) & mask_)) continue;
      slots_[hole] = slots_[i];
      hole = i;
    }
    slots_[hole] = {};
    --count_;
  }

 private:
  struct Slot {
    Address address = 0;  // 0 = empty
    std::uint32_t block = 0;
  };

  // Knuth's multiplicative hash over the part of the address that varies; the high bits are the good ones.
  std::size_t home(Address address) const { return ((address >> 9) * 0x9e3779b97f4a7c15ULL >> 32) & mask_; }

  void place(Slot slot) {
    std::size_t i = home(slot.address);
    while (slots_[i].address != 0) i = (i + 1) & mask_;
    slots_[i] = slot;
  }

  void grow() {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    mask_ = slots_.size() - 1;
    for (const Slot& slot : old)
      if (slot.address != 0) place(slot);
  }

  std::vector<Slot> slots_;
  std::size_t mask_;
  std::size_t count_ = 0;
};

}  // namespace memwall
