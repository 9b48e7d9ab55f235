// Where the spans of a lane stand in the file, by time: binary search over its blocks, which may
// overlap in time where a lane's spans do not begin in the order of ops.
#pragma once

#include <vector>

#include "gui/model/time_range.h"
#include "traces/run/run_index.h"

namespace memwall::gui {

class LaneBlockSearch {
 public:
  // `blocks`: of one lane, ascending in block; must outlive it.
  explicit LaneBlockSearch(const std::vector<LaneBlock>& blocks);

  struct Part {
    std::size_t first = 0, last = 0;  // blocks [first, last)
    bool empty() const { return first == last; }
  };
  // All blocks with spans that touch the range are in it, and, where blocks overlap, some without.
  Part within(TimeRange range) const;
  // About how many spans of these blocks touch the range, if they are evenly spread.
  double spans_within(Part part, TimeRange range) const;
  // The latest end of all spans in blocks before `i`; 0 if there is none.
  Time reach_before(std::size_t i) const { return i == 0 ? Time{} : reach_[i - 1]; }
  // The index of a block of ops; blocks().size() if the lane has nothing in it.
  std::size_t index_of(std::uint32_t block) const;
  const std::vector<LaneBlock>& blocks() const { return *blocks_; }

 private:
  const std::vector<LaneBlock>* blocks_;
  std::vector<Time> reach_;  // latest end up to and with each block
  std::vector<Time> start_;  // earliest begin from each block on
};

}  // namespace memwall::gui
