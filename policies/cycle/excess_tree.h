// Bytes that live in each slot of a cycle, while storages are taken away and brought back, and where they are more than
// a limit. Ranges of slots may wrap around. Slots stand in blocks of about the square root of their number: a change
// costs O(sqrt(n)), and O(log n) more for each slot that crosses the limit; of a step's some thousand slots that is
// less than what a deeper tree takes.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/units.h"

namespace memwall {

class ExcessTree {
 public:
  // `live` and `times`: by slot. `times` has to outlive it.
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
  template <typename Part>
  void for_parts(std::int64_t first, std::int64_t end, Part part) const;
  std::size_t block_of(std::size_t slot) const { return slot >> shift_; }
  std::size_t first_of(std::size_t block) const { return block << shift_; }
  std::size_t end_of(std::size_t block) const;
  void renew(std::size_t block);
  void renew_marks(std::size_t block, bool grows);
  Bytes highest_in(std::size_t first, std::size_t end) const;
  std::size_t find_over(std::size_t first) const;
  void count(std::size_t slot, bool over);
  Duration time_before(std::size_t slot) const;

  const std::vector<Duration>& times_;
  const Bytes limit_;
  std::size_t slots_;
  std::size_t shift_ = 0;                             // a block has 2^shift_ slots, the last one the rest
  std::vector<Bytes> live_;                           // by slot, without what was added to its whole block
  std::vector<Bytes> added_, highest_, lowest_over_;  // by block; the others without what was added to all of it
  std::vector<std::int64_t> sums_;                    // Fenwick tree of the times of marked slots
  std::vector<std::uint8_t> marked_;                  // by slot: it is over the limit
  std::size_t over_ = 0;
};

}  // namespace memwall
