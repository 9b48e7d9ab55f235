#include "traces/run/lane_cells.h"

#include <algorithm>
#include <bit>
#include <numeric>

namespace memwall {
namespace {

// Of a short lane a bucket per span, of a long one one per 16 to 32 spans.
constexpr std::uint64_t kFinely = 1 << 16, kSpansPerBucket = 32;

std::uint8_t log2_ceiling(std::uint64_t value) {
  return static_cast<std::uint8_t>(value <= 1 ? 0 : std::bit_width(value - 1));
}

template <class Times>
std::size_t largest(const Times& times) {
  return static_cast<std::size_t>(std::max_element(times.begin(), times.end()) - times.begin());
}

}  // namespace

LaneCellBuilder::LaneCellBuilder(std::uint64_t spans, Time end) {
  if (spans == 0 || end <= Time{}) return;
  const auto length = static_cast<std::uint64_t>(end.count());
  const std::uint64_t wanted =
      std::max(std::min(kFinely, std::bit_ceil(spans)), std::bit_ceil(spans / kSpansPerBucket));
  base_log2_ = log2_ceiling((length + wanted - 1) / wanted);
  const std::uint64_t buckets = (length >> base_log2_) + 1;
  open_.resize(std::size_t{1} + log2_ceiling(buckets));
  cells_.resize(open_.size());
}

void LaneCellBuilder::merge(Bucket& into, const Bucket& from) {
  for (std::size_t i = 0; i < from.busy.size(); ++i) into.busy[i] += from.busy[i];
  for (std::size_t i = 0; i < from.stall.size(); ++i) into.stall[i] += from.stall[i];
  if (into.begins == 0 && from.begins > 0) {
    into.before = from.before;
    into.first_category = from.first_category;
  }
  into.begins += from.begins;
  into.is_empty = false;
}

void LaneCellBuilder::close(std::size_t level) {
  Bucket& bucket = open_[level];
  if (bucket.is_empty) return;
  const std::int64_t busy = std::accumulate(bucket.busy.begin(), bucket.busy.end(), std::int64_t{0});
  if (busy > 0 || bucket.begins > 0) {
    LaneCell cell{static_cast<std::uint32_t>(bucket.number), Duration(busy), bucket.begins};
    cell.category = busy > 0 ? static_cast<SpanCategory>(largest(bucket.busy)) : bucket.first_category;
    const std::size_t stall = largest(bucket.stall);
    cell.stall = bucket.stall[stall] > 0 ? static_cast<WaitReason>(stall) : WaitReason::none;
    cell.before = bucket.before;
    cells_[level].push_back(cell);
  }
  if (level + 1 < open_.size()) {
    Bucket& wider = open_[level + 1];
    if (!wider.is_empty && wider.number != bucket.number / 2) close(level + 1);
    wider.number = bucket.number / 2;
    merge(wider, bucket);
  }
  bucket = Bucket{};
}

LaneCellBuilder::Bucket& LaneCellBuilder::at(std::uint64_t number) {
  if (!open_[0].is_empty && open_[0].number != number) close(0);
  open_[0].number = number;
  open_[0].is_empty = false;
  return open_[0];
}

void LaneCellBuilder::count(std::uint64_t from, std::uint64_t to, std::int64_t index, bool busy) {
  const auto slot = static_cast<std::size_t>(index);
  while (from < to) {
    const std::uint64_t number = from >> base_log2_;
    const std::uint64_t until = std::min(to, (number + 1) << base_log2_);
    Bucket& bucket = at(number);
    (busy ? bucket.busy[slot] : bucket.stall[slot]) += static_cast<std::int64_t>(until - from);
    from = until;
  }
}

// Counts the time up to `time`: busy as long as what has begun lasts, then waiting for `reason`.
void LaneCellBuilder::proceed_to(Time time, WaitReason reason) {
  const auto ps = [](Time t) { return static_cast<std::uint64_t>(t.count()); };
  if (const Time busy_end = std::min(busy_until_, time); done_ < busy_end) {
    count(ps(done_), ps(busy_end), static_cast<std::int64_t>(busy_category_), true);
    done_ = busy_end;
  }
  if (done_ >= time) return;
  if (reason != WaitReason::none) count(ps(done_), ps(time), static_cast<std::int64_t>(reason), false);
  done_ = time;
}

void LaneCellBuilder::add(const LaneSpan& span) {
  proceed_to(span.begin, span.reason);
  Bucket& bucket = at(static_cast<std::uint64_t>(span.begin.count()) >> base_log2_);
  if (bucket.begins++ == 0) {
    bucket.before = span.reason;
    bucket.first_category = span.category;
  }
  if (span.end < busy_until_) return;
  busy_until_ = span.end;
  busy_category_ = span.category;
}

std::vector<std::vector<LaneCell>> LaneCellBuilder::finish() {
  proceed_to(busy_until_, WaitReason::none);
  for (std::size_t level = 0; level < open_.size(); ++level) close(level);
  return std::move(cells_);
}

}  // namespace memwall
