// Keeps what AllocatorStatistics reports up to date, at the cost of a few additions per call of the allocator.
//
// Sums over both pools are not kept where they can be added up when asked for; only their peaks must be. Blocks that
// wait for other streams are counted apart, so that `active` is what is handed out and what waits.
#pragma once

#include <algorithm>

#include "sim/allocator_statistics.h"

namespace memwall {

class AllocatorCounters {
 public:
  void hand_out(bool large, Bytes size, Bytes requested) {
    Pool& pool = pools_[large];
    ++pool.calls;
    pool.size_sum += size;
    pool.requested_sum += requested;
    ++pool.now.blocks;
    pool.now.bytes += size;
    pool.now.requested += requested;
    raise(pool.now, pool.peak);
    raise(both(), peak_);
  }
  // A block that waits for other streams since before the counting began.
  void hand_out_waiting(bool large, Bytes size, Bytes requested) {
    Pool& pool = pools_[large];
    ++pool.calls;
    pool.size_sum += size;
    pool.requested_sum += requested;
    ++pool.now.waiting;
    pool.now.waiting_bytes += size;
    pool.now.requested += requested;
    raise(pool.now, pool.peak);
    raise(both(), peak_);
  }
  // The host freed a block: it leaves `allocated` and stays active.
  void take_back(bool large, Bytes size) {
    Now& now = pools_[large].now;
    --now.blocks;
    now.bytes -= size;
    ++now.waiting;
    now.waiting_bytes += size;
  }
  // No stream uses it any more.
  void complete(bool large, Bytes size, Bytes requested) {
    Now& now = pools_[large].now;
    --now.waiting;
    now.waiting_bytes -= size;
    now.requested -= requested;
  }
  // Both at once.
  void free(bool large, Bytes size, Bytes requested) {
    Now& now = pools_[large].now;
    --now.blocks;
    now.bytes -= size;
    now.requested -= requested;
  }
  // Free blocks in split segments: how many more, or fewer, and of how many bytes.
  void change_inactive(bool large, std::int64_t blocks, Bytes bytes) {
    change(inactive_, large, blocks);
    change(inactive_bytes_, large, bytes);
  }
  void reserve(bool large, Bytes bytes) { change(reserved_, large, bytes); }  // negative: given back
  void change_segments(bool large, std::int64_t count) { change(segments_, large, count); }
  void change_oversize_allocations(std::int64_t count) { change(oversize_allocations_, count); }
  void change_oversize_segments(std::int64_t count) { change(oversize_segments_, count); }

  std::int64_t active_bytes() const {
    const Now now = both();
    return now.bytes + now.waiting_bytes;
  }
  // All but the scalars that AllocatorEvents has, and max_split_size.
  AllocatorStatistics statistics() const;

  std::int64_t out_of_memory = 0, synchronizations = 0;

 private:
  struct Now {
    std::int64_t blocks = 0, bytes = 0;  // handed out
    std::int64_t requested = 0;          // handed out or waiting
    std::int64_t waiting = 0, waiting_bytes = 0;
  };
  struct Peak {
    std::int64_t blocks = 0, bytes = 0, requested = 0, active = 0, active_bytes = 0;
  };
  struct Pool {
    Now now;
    Peak peak;
    std::int64_t calls = 0, size_sum = 0, requested_sum = 0;  // of all that was ever handed out
  };

  Now both() const {
    const Now &a = pools_[0].now, &b = pools_[1].now;
    return {a.blocks + b.blocks, a.bytes + b.bytes, a.requested + b.requested, a.waiting + b.waiting,
            a.waiting_bytes + b.waiting_bytes};
  }
  static void raise(const Now& now, Peak& peak) {
    peak.blocks = std::max(peak.blocks, now.blocks);
    peak.bytes = std::max(peak.bytes, now.bytes);
    peak.requested = std::max(peak.requested, now.requested);
    peak.active = std::max(peak.active, now.blocks + now.waiting);
    peak.active_bytes = std::max(peak.active_bytes, now.bytes + now.waiting_bytes);
  }
  static void change(Statistic& statistic, std::int64_t amount) {
    statistic.current += amount;
    statistic.peak = std::max(statistic.peak, statistic.current);
    statistic.allocated += std::max<std::int64_t>(amount, 0);
    statistic.freed += std::max<std::int64_t>(-amount, 0);
  }
  static void change(PoolStatistics& statistics, bool large, std::int64_t amount) {
    change(statistics[0], amount);
    change(statistics[large ? 2 : 1], amount);
  }

  Pool pools_[2];  // small, large
  Peak peak_;      // of both together
  PoolStatistics inactive_, inactive_bytes_, reserved_, segments_;
  Statistic oversize_allocations_, oversize_segments_;
};

}  // namespace memwall
