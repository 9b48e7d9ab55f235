// Level of detail of one lane: its spans go in, in the order of their begin, and buckets of doubling width come out.
// Internal to traces/run; LaneCell says what a bucket holds.
//
// One pass, one open bucket per level: a bucket that is complete is added to the one twice as wide that it lies in.
// Of spans that overlap, an instant counts for the one that ends last.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "traces/run/run_index.h"

namespace memwall {

struct LaneSpan {
  Time begin{}, end{};
  SpanCategory category = SpanCategory::compute;
  WaitReason reason = WaitReason::none;  // why it was not earlier; none: nobody asks (all but streams)
};

class LaneCellBuilder {
 public:
  // Of a lane of `spans` spans in a run that ends at `end`.
  LaneCellBuilder(std::uint64_t spans, Time end);
  std::uint8_t base_log2() const { return base_log2_; }
  std::uint8_t levels() const { return static_cast<std::uint8_t>(cells_.size()); }  // 0: no spans, or no time

  // REQUIRES: within the run; begins not before the span added last; levels() > 0.
  void add(const LaneSpan& span);
  std::vector<std::vector<LaneCell>> finish();

 private:
  struct Bucket {
    std::uint64_t number = 0;
    std::array<std::int64_t, kSpanCategories> busy{};
    std::array<std::int64_t, kWaitReasons> stall{};
    std::uint64_t begins = 0;
    WaitReason before = WaitReason::none;
    SpanCategory first_category = SpanCategory::compute;
    bool is_empty = true;  // nothing was counted
  };

  void proceed_to(Time time, WaitReason reason);
  void count(std::uint64_t from, std::uint64_t to, std::int64_t index, bool busy);
  Bucket& at(std::uint64_t number);
  void close(std::size_t level);
  static void merge(Bucket& into, const Bucket& from);

  std::uint8_t base_log2_ = 0;
  std::vector<Bucket> open_;  // per level
  std::vector<std::vector<LaneCell>> cells_;
  Time done_{}, busy_until_{};  // everything before done_ is counted
  SpanCategory busy_category_ = SpanCategory::compute;
};

}  // namespace memwall
