// Bytes in each slot of a cycle while ranges of slots get more or fewer, and the most in a range. Ranges may wrap
// around. Slots stand in blocks of about the square root of their number: a change costs O(sqrt(n)); of a step's some
// thousand slots that is less than what a deeper tree takes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/units.h"

namespace memwall {

// Calls part(a, b) for each stretch a <= place < b of one turn of `slots` that slots first <= slot < end, counted on
// into the next turn, take: two at most. A turn or more is all of it, once.
template <typename Part>
void for_parts_of_turn(std::int64_t first, std::int64_t end, std::size_t slots, Part part) {
  const auto turn = static_cast<std::int64_t>(slots);
  if (end <= first) return;
  if (end - first >= turn) return part(std::size_t{0}, slots);
  std::int64_t from = first;
  if (from < 0 || from >= turn) from -= (from >= 0 ? from / turn : -((-from + turn - 1) / turn)) * turn;
  const auto a = static_cast<std::size_t>(from), b = static_cast<std::size_t>(from + (end - first));
  part(a, std::min(b, slots));
  if (b > slots) part(std::size_t{0}, b - slots);
}

// log2 of the slots in a block.
std::size_t shift_of_blocks(std::size_t slots);

class SlotBytes {
 public:
  // REQUIRES: at least one slot.
  explicit SlotBytes(std::vector<Bytes> bytes);

  // Slots first <= slot < end, counted on into the next turn; nothing if end <= first.
  void add(std::int64_t first, std::int64_t end, Bytes bytes);
  // At least 0.
  Bytes highest(std::int64_t first, std::int64_t end) const;
  Bytes at(std::int64_t slot) const;

 private:
  void add_within(std::size_t block, std::size_t from, std::size_t to, Bytes bytes);
  std::size_t end_of(std::size_t block) const { return std::min((block + 1) << shift_, bytes_.size()); }

  std::vector<Bytes> bytes_;            // by slot, without what was added to its whole block
  std::size_t shift_;                   // a block has 2^shift_ slots, the last one the rest
  std::vector<Bytes> added_, highest_;  // by block; the highest without what was added to all of it
};

}  // namespace memwall
