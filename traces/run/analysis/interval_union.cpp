#include "traces/run/analysis/interval_union.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace memwall {
namespace {

bool begins_earlier(const Interval& a, const Interval& b) { return a.begin < b.begin; }

// REQUIRES: ascending in begin.
void join_neighbours(std::vector<Interval>& intervals) {
  std::size_t kept = 0;
  for (const Interval& interval : intervals) {
    if (kept > 0 && interval.begin <= intervals[kept - 1].end)
      intervals[kept - 1].end = std::max(intervals[kept - 1].end, interval.end);
    else
      intervals[kept++] = interval;
  }
  intervals.resize(kept);
}

}  // namespace

std::vector<Interval> IntervalUnion::take() {
  std::vector<Interval> all;
  for (Lane& lane : std::exchange(lanes_, {})) {
    if (lane.intervals.empty()) continue;
    if (!lane.sorted) std::sort(lane.intervals.begin(), lane.intervals.end(), begins_earlier);
    join_neighbours(lane.intervals);
    if (all.empty()) {
      all = std::move(lane.intervals);
      continue;
    }
    std::vector<Interval> both;
    both.reserve(all.size() + lane.intervals.size());
    std::merge(all.begin(), all.end(), lane.intervals.begin(), lane.intervals.end(), std::back_inserter(both),
               begins_earlier);
    join_neighbours(both);
    all = std::move(both);
  }
  return all;
}

}  // namespace memwall
