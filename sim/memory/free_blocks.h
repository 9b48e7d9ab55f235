// The free blocks of one pool and stream, ordered by size and then by address, so
// that the best fit is the first block that is large enough.
//
// Blocks stand in bins of growing width (64 per power of two, counted in quanta of 512 bytes);
// bins are in order of size, a bin is sorted, and two levels of bits say which bins hold anything.
// Finding a block therefore costs two bit scans instead of a walk through a tree.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "sim/memory/allocator.h"

namespace memwall {

class FreeBlocks {
 public:
  struct Entry {
    Bytes size = 0;
    Address address = 0;
    std::uint32_t block = 0;
  };
  static constexpr std::uint32_t kNone = 0xffffffff;
  static constexpr Bytes kQuantum = 512;
  static constexpr Bytes kLargest = Bytes{1} << 60;

  // REQUIRES: the size is a multiple of kQuantum in [kQuantum, kLargest].
  void insert(Bytes size, Address address, std::uint32_t block);
  // REQUIRES: the block is in the list with this size and address. Two blocks may have both in common (a damaged
  // recording puts two segments at one address); the one that is named goes.
  void erase(Bytes size, Address address, std::uint32_t block);
  // Removes the smallest block of at least `size` bytes, of equals that at the lowest address;
  // kNone if there is none.
  std::uint32_t take_best(Bytes size);
  // The first block at or after (size, address) in the order of the list, and the last one before it; null if there is
  // none. For searches by other rules than the best fit: a walk is a sequence of these. Valid until the next change.
  const Entry* find_from(Bytes size, Address address = 0) const;
  const Entry* find_before(Bytes size, Address address = 0) const;
  // By size, then address, ascending.
  std::vector<Entry> entries() const;

 private:
  using Bin = std::vector<Entry>;  // descending: the next block to hand out is at the back

  static std::size_t bin_of(Bytes size);
  // The first bin from `bin` on that holds anything, or bins_.size().
  std::size_t next_filled(std::size_t bin) const;
  // The last bin before `bin` that holds anything, or bins_.size().
  std::size_t previous_filled(std::size_t bin) const;
  void mark_empty(std::size_t bin);

  std::vector<Bin> bins_;
  std::array<std::uint64_t, 64> filled_{};  // one bit per bin
  std::uint64_t filled_words_ = 0;          // one bit per word of filled_
};

}  // namespace memwall
