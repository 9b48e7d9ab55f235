// The union of intervals of time.
#pragma once

#include <cstddef>
#include <vector>

#include "sim/units.h"

namespace memwall {

struct Interval {
  Time begin{}, end{};
};

// Intervals come lane by lane, in each lane mostly in order of their begin (a stream works on one op after the other),
// so that most of them join the one before or follow it, and nothing needs to be sorted.
class IntervalUnion {
 public:
  // REQUIRES: begin <= end. One without length adds nothing but joins neighbours that touch it.
  void add(std::size_t lane, Time begin, Time end) {
    if (lane >= lanes_.size()) lanes_.resize(lane + 1);
    Lane& to = lanes_[lane];
    if (!to.intervals.empty()) {
      Interval& last = to.intervals.back();
      if (begin >= last.begin && begin <= last.end) {
        if (end > last.end) last.end = end;
        return;
      }
      to.sorted = to.sorted && begin >= last.begin;
    }
    to.intervals.push_back({begin, end});
  }

  // Ascending and disjoint; those that touch are one. Empty afterwards.
  std::vector<Interval> take();

 private:
  struct Lane {
    std::vector<Interval> intervals;
    bool sorted = true;  // by begin
  };
  std::vector<Lane> lanes_;
};

}  // namespace memwall
