// Bytes that live in each slot of a cycle, while storages are taken away and brought back, and where they are more than
// a limit. Ranges of slots may wrap around. A change costs O(log n), and O(log n) more for each slot that comes under the
// limit.
#pragma once

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
  struct Node {
    Bytes highest = 0;      // of its slots
    Bytes lowest_over = 0;  // of those that are marked as over; kNone: none
    Bytes added = 0;        // to all, not yet in those below
  };
  template <typename Part>
  void for_parts(std::int64_t first, std::int64_t end, Part part) const;
  void build(std::size_t node, std::size_t from, std::size_t to, const std::vector<Bytes>& live);
  void add(std::size_t node, std::size_t from, std::size_t to, std::size_t first, std::size_t end, Bytes bytes);
  Bytes highest(std::size_t node, std::size_t from, std::size_t to, std::size_t first, std::size_t end) const;
  void unmark(std::size_t node, std::size_t from, std::size_t to, Bytes above);
  void mark(std::size_t node, std::size_t from, std::size_t to, std::size_t first, std::size_t end, Bytes above);
  std::size_t find_over(std::size_t node, std::size_t from, std::size_t to, std::size_t first) const;
  void renew(std::size_t node);
  void count(std::size_t slot, bool over);
  Duration time_before(std::size_t slot) const;

  const std::vector<Duration>& times_;
  const Bytes limit_;
  std::size_t slots_;
  std::vector<Node> nodes_;
  std::vector<std::int64_t> sums_;  // Fenwick tree of the times of marked slots
  std::vector<bool> marked_;
  std::size_t over_ = 0;
};

}  // namespace memwall
