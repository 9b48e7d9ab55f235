// What a source says of a run zoomed out, kept in memory: cells of lanes, flow over links, memory of
// tiers. Read in pieces of fixed size and place, so that panning reads little and zooming back nothing.
//
// Least recently used pieces go first. Safe to use from several threads. Reads in the caller's thread:
// a piece is small (at most kPiece cells or points).
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <variant>
#include <vector>

#include "gui/model/time_range.h"
#include "traces/run/run_source.h"

namespace memwall::gui {

class LevelOfDetail {
 public:
  static constexpr std::uint64_t kPiece = 1024;
  static constexpr std::size_t kDefaultBudget = std::size_t{12} << 20;
  explicit LevelOfDetail(std::shared_ptr<const RunSource> source, std::size_t budget = kDefaultBudget);

  using Cells = std::shared_ptr<const std::vector<LaneCell>>;
  // Buckets [first, last) of a level of a lane, piece by piece: the first and last piece may hold others.
  // Throws InputError.
  std::vector<Cells> cells(std::uint32_t lane, std::uint8_t level, std::uint64_t first, std::uint64_t last) const;
  // At least `range`, at most about four times as long, at least `most` points per `range` where there are as many.
  // Throws InputError.
  std::shared_ptr<const std::vector<RateHigh>> link_rates(std::uint32_t link, TimeRange range, std::size_t most) const;
  std::shared_ptr<const std::vector<MemoryHigh>> memory(std::uint32_t tier, TimeRange range, std::size_t most) const;

  std::size_t resident_bytes() const;

 private:
  enum class Of : std::uint8_t { cells, rates, memory };
  // Lane, link or tier; level, or points asked for; first bucket or instant; last.
  using Key = std::tuple<Of, std::uint32_t, std::uint64_t, std::int64_t, std::int64_t>;
  using Value =
      std::variant<Cells, std::shared_ptr<const std::vector<RateHigh>>, std::shared_ptr<const std::vector<MemoryHigh>>>;
  struct Entry {
    Value value;
    std::size_t bytes = 0;
    std::list<Key>::iterator age;
  };
  // `read` gives a vector; called without the lock.
  template <class T, class Read>
  std::shared_ptr<const std::vector<T>> get(const Key& key, const Read& read) const;
  TimeRange aligned(TimeRange range) const;

  std::shared_ptr<const RunSource> source_;
  std::size_t budget_;
  mutable std::size_t resident_ = 0;
  mutable std::mutex mutex_;
  mutable std::list<Key> ages_;  // most recently used first
  mutable std::map<Key, Entry> entries_;
};

}  // namespace memwall::gui
