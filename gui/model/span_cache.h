// Spans that were read, within a budget of bytes: the least recently looked at go first.
//
// find() never reads: a frame draws what is there, and says what is missing; a worker loads that,
// and the next frame is sharper. Safe to use from several threads.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "traces/run/run_source.h"

namespace memwall::gui {

// A block of ops, and which of them stand in which lane.
struct LoadedBlock {
  SpanBlock spans;
  // Per lane of the outline: offsets into `spans`, ascending in begin. Of a pager's lane: empty.
  std::vector<std::vector<std::uint16_t>> of_lane;
  std::size_t bytes() const;
};

class SpanCache {
 public:
  static constexpr std::size_t kDefaultBudget = std::size_t{256} << 20;
  explicit SpanCache(std::shared_ptr<const RunSource> source, std::size_t budget = kDefaultBudget);

  // Null if it is not in memory.
  std::shared_ptr<const LoadedBlock> find(std::uint32_t block) const;
  // Reads it where it is not. Throws InputError.
  std::shared_ptr<const LoadedBlock> load(std::uint32_t block);
  std::size_t resident_bytes() const;

 private:
  struct Entry {
    std::shared_ptr<const LoadedBlock> block;
    std::list<std::uint32_t>::iterator age;
  };
  std::shared_ptr<const RunSource> source_;
  std::size_t budget_, resident_ = 0;
  mutable std::mutex mutex_;
  mutable std::list<std::uint32_t> ages_;  // most recently used first
  mutable std::map<std::uint32_t, Entry> entries_;
};

}  // namespace memwall::gui
