// Bytes that live in each slot of a cycle, while storages are taken away and brought back, and where they are more than
// a limit. Ranges of slots may wrap around. Slots stand in blocks, as in SlotBytes: a change costs O(sqrt(n)), and how
// long slots are over the limit O(1), as that is asked far more often.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sim/units.h"

namespace memwall {

class ExcessTree {
 public:
  // `live` and `times`: by slot.
  ExcessTree(const std::vector<Bytes>& live, const std::vector<Duration>& times, Bytes limit);

  // Slots first <= slot < end, counted on into the next turn; nothing if end <= first.
  void add(std::int64_t first, std::int64_t end, Bytes bytes);
  Bytes highest(std::int64_t first, std::int64_t end) const;
  // Together, of the slots that are over the limit.
  Duration time_over(std::int64_t first, std::int64_t end) const;
  bool is_over() const { return over_ > 0; }
  bool is_over(std::int64_t slot) const;
  // Over the limit, the first at `slot` or behind it within one turn; slot + turn where none is.
  std::int64_t next_over(std::int64_t slot) const;
  Bytes at(std::int64_t slot) const;

 private:
  std::size_t block_of(std::size_t slot) const { return slot >> shift_; }
  std::size_t first_of(std::size_t block) const { return block << shift_; }
  std::size_t end_of(std::size_t block) const { return std::min(first_of(block + 1), slots_); }
  bool crosses(std::size_t block, bool grows) const;
  void renew(std::size_t block);
  void renew_sums();
  Bytes highest_in(std::size_t first, std::size_t end) const;
  std::size_t find_over(std::size_t first) const;
  std::int64_t time_before(std::size_t slot) const { return before_[block_of(slot)] + within_[slot]; }

  // By slot; close together, as all of a block is looked at where some of it changes.
  struct Slot {
    Bytes live = 0;         // without what was added to its whole block
    std::int64_t time = 0;  // picoseconds
  };
  // By block; the others without what was added to all of it.
  struct Block {
    Bytes added = 0, highest = 0, lowest_over = 0;
    std::int64_t time_over = 0;  // of its slots over the limit
    std::size_t over = 0;        // so many
  };

  const Bytes limit_;
  std::size_t slots_;
  std::size_t shift_ = 0;  // a block has 2^shift_ slots, the last one the rest
  std::vector<Slot> all_;
  std::vector<Block> blocks_;
  std::vector<std::int64_t> before_;  // by block, and one more: time over the limit before it
  std::vector<std::int64_t> within_;  // by slot, and one more: the same of its block
  std::size_t over_ = 0;
};

}  // namespace memwall
