#include "gui/model/level_of_detail.h"

#include <bit>

namespace memwall::gui {

LevelOfDetail::LevelOfDetail(std::shared_ptr<const RunSource> source, std::size_t budget)
    : source_(std::move(source)), budget_(budget) {}

template <class T, class Read>
std::shared_ptr<const std::vector<T>> LevelOfDetail::get(const Key& key, const Read& read) const {
  using Piece = std::shared_ptr<const std::vector<T>>;
  {
    const std::lock_guard lock(mutex_);
    const auto at = entries_.find(key);
    if (at != entries_.end()) {
      ages_.splice(ages_.begin(), ages_, at->second.age);
      return std::get<Piece>(at->second.value);
    }
  }
  std::vector<T> values = read();
  values.shrink_to_fit();
  const std::size_t bytes = sizeof(Entry) + 2 * sizeof(Key) + values.capacity() * sizeof(T);
  const Piece piece = std::make_shared<const std::vector<T>>(std::move(values));
  const std::lock_guard lock(mutex_);
  if (entries_.contains(key)) return piece;  // another thread was faster
  ages_.push_front(key);
  entries_.emplace(key, Entry{piece, bytes, ages_.begin()});
  resident_ += bytes;
  while (resident_ > budget_ && ages_.size() > 1) {
    const auto oldest = entries_.find(ages_.back());
    resident_ -= oldest->second.bytes;
    entries_.erase(oldest);
    ages_.pop_back();
  }
  return piece;
}

std::vector<LevelOfDetail::Cells> LevelOfDetail::cells(std::uint32_t lane, std::uint8_t level, std::uint64_t first,
                                                       std::uint64_t last) const {
  std::vector<Cells> pieces;
  for (std::uint64_t piece = first / kPiece; piece * kPiece < last; ++piece) {
    const Key key{Of::cells, lane, level, static_cast<std::int64_t>(piece), 0};
    pieces.push_back(
        get<LaneCell>(key, [&] { return source_->cells(lane, level, piece * kPiece, (piece + 1) * kPiece); }));
  }
  return pieces;
}

// Halves of a power of two overlap by one half: a range that moves stays within one of them for a while.
TimeRange LevelOfDetail::aligned(TimeRange range) const {
  const auto length = static_cast<std::uint64_t>(std::max<std::int64_t>(1, range.length().count()));
  const auto half = static_cast<std::int64_t>(std::bit_ceil(length));
  const std::int64_t begin = range.begin.count() / half * half;
  const Time end = source_->outline().run.result.end;
  return {std::min(Time(begin), end), std::min(Time(begin + 2 * half), end)};
}

std::shared_ptr<const std::vector<RateHigh>> LevelOfDetail::link_rates(std::uint32_t link, TimeRange range,
                                                                       std::size_t most) const {
  const TimeRange wide = aligned(range);
  const Key key{Of::rates, link, most, wide.begin.count(), wide.end.count()};
  return get<RateHigh>(key, [&] { return source_->link_rates(link, wide.begin, wide.end, 4 * most); });
}

std::shared_ptr<const std::vector<MemoryHigh>> LevelOfDetail::memory(std::uint32_t tier, TimeRange range,
                                                                     std::size_t most) const {
  const TimeRange wide = aligned(range);
  const Key key{Of::memory, tier, most, wide.begin.count(), wide.end.count()};
  return get<MemoryHigh>(key, [&] { return source_->memory(tier, wide.begin, wide.end, 4 * most); });
}

std::size_t LevelOfDetail::resident_bytes() const {
  const std::lock_guard lock(mutex_);
  return resident_;
}

}  // namespace memwall::gui
