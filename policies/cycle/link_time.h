// What slots of a cycle leave of one link's time, while copies take their part. Copies may be cut at slots' borders here:
// an estimate of what a queue of whole copies does.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/units.h"

namespace memwall {

class LinkTime {
 public:
  explicit LinkTime(const std::vector<Duration>& times);

  // The first slot at whose start a copy is done that begins at the start of `from` or later; nothing where links have
  // no time left for it before the start of `end`. end - from <= the cycle's slots.
  std::optional<std::int64_t> earliest(Duration needed, std::int64_t from, std::int64_t end) const;
  // The last slot at whose start a copy may begin that is done at the start of `end`; nothing where there is no time
  // from the start of `from` on.
  std::optional<std::int64_t> latest(Duration needed, std::int64_t from, std::int64_t end) const;
  // As earliest() and latest(), which must have given something for the same numbers.
  void take_earliest(Duration needed, std::int64_t from);
  void take_latest(Duration needed, std::int64_t end);
  // More time in each slot. REQUIRES: as many as slots.
  void give(const std::vector<Duration>& more);

 private:
  std::size_t place(std::int64_t slot) const;
  std::int64_t before(std::int64_t place) const;     // time left in slots before it, of one turn
  std::int64_t last_with(std::int64_t sum) const;    // the last place before which at most so much is left
  void take(std::size_t place, std::int64_t time);
  std::int64_t turns_before(std::int64_t slot) const;

  std::int64_t slots_;
  std::int64_t all_ = 0;             // picoseconds left
  std::vector<std::int64_t> left_;   // by slot
  std::vector<std::int64_t> sums_;   // Fenwick tree over them
  std::vector<std::int64_t> skip_, skip_back_;  // of slots without time: how far the next one may be
};

}  // namespace memwall
