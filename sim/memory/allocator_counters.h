// Keeps what AllocatorStatistics reports up to date, at the cost of a few additions per call of the allocator.
//
// Sums over both pools are not kept where they can be added up when asked for; only their peaks must be. Blocks that
// wait for other streams are counted apart, so that `active` is what is handed out and what waits.
#pragma once

#include <algorithm>

#include "sim/memory/allocator.h"
#include "sim/memory/allocator_statistics.h"

namespace memwall {

class AllocatorCounters {
 public:
  // What is handed out, over both pools: kept here, as it is asked for after every call.
  const Usage& usage() const { return usage_; }
  Usage& usage() { return usage_; }

  void hand_out(bool large, Bytes size, Bytes requested) {
    Pool& pool = pools_[large];
    ++pool.calls;
    pool.size_sum += size;
    pool.requested_sum += requested;
    ++pool.blocks;
    pool.bytes += size;
    pool.requested += requested;
    usage_.allocated += size;
    usage_.requested += requested;
    raise_peaks(pool);
  }
  void free(bool large, Bytes size, Bytes requested) {
    Pool& pool = pools_[large];
    --pool.blocks;
    pool.bytes -= size;
    pool.requested -= requested;
    usage_.allocated -= size;
    usage_.requested -= requested;
  }

  // The two halves of a free: first the block leaves `allocated` and stays active, then it leaves `active`.
  void begin_wait(bool large, Bytes size, Bytes requested);
  void end_wait(bool large, Bytes size, Bytes requested);
  // A block that waits since before the counting began.
  void add_waiting(bool large, Bytes size, Bytes requested);

  // Free blocks in split segments: how many more, or fewer, and of how many bytes.
  void change_inactive(bool large, std::int64_t blocks, Bytes bytes) {
    inactive_.change(large, blocks);
    inactive_bytes_.change(large, bytes);
  }
  void reserve(bool large, Bytes bytes) {  // negative: given back
    usage_.reserved += bytes;
    reserved_.change(large, bytes);
  }
  void change_segments(bool large, std::int64_t count) { segments_.change(large, count); }
  void change_oversize_allocations(std::int64_t count) { oversize_allocations_.change(false, count); }
  void change_oversize_segments(std::int64_t count) { oversize_segments_.change(false, count); }

  Bytes active_bytes() const { return usage_.allocated + pools_[0].waiting_bytes + pools_[1].waiting_bytes; }
  // All but the scalars that AllocatorEvents has, and max_split_size.
  AllocatorStatistics statistics() const;

  std::int64_t out_of_memory = 0, synchronizations = 0;

 private:
  struct Peak {
    std::int64_t blocks = 0, bytes = 0, requested = 0;
    // Of what is active: only while something waits, otherwise those above are the same.
    std::int64_t active = 0, active_bytes = 0;
  };
  struct Pool {
    std::int64_t blocks = 0, bytes = 0;  // handed out
    std::int64_t requested = 0;          // handed out or waiting
    Peak peak;
    std::int64_t calls = 0, size_sum = 0, requested_sum = 0;  // of all that was ever handed out
    std::int64_t waiting = 0, waiting_bytes = 0;
  };
  // A figure that goes up and down, of small and large pools: now, the most at once, the sum of all increases.
  struct Figure {
    std::int64_t now[2] = {0, 0}, peak[2] = {0, 0}, increases[2] = {0, 0};
    std::int64_t peak_of_both = 0;

    void change(bool large, std::int64_t amount) {
      now[large] += amount;
      if (amount <= 0) return;
      increases[large] += amount;
      peak[large] = std::max(peak[large], now[large]);
      peak_of_both = std::max(peak_of_both, now[0] + now[1]);
    }
    PoolStatistics statistics() const;
  };

  void raise_peaks(Pool& pool) {
    pool.peak.blocks = std::max(pool.peak.blocks, pool.blocks);
    pool.peak.bytes = std::max(pool.peak.bytes, pool.bytes);
    pool.peak.requested = std::max(pool.peak.requested, pool.requested);
    peak_.blocks = std::max(peak_.blocks, pools_[0].blocks + pools_[1].blocks);
    peak_.bytes = std::max(peak_.bytes, usage_.allocated);
    peak_.requested = std::max(peak_.requested, pools_[0].requested + pools_[1].requested);
    if ((pools_[0].waiting | pools_[1].waiting) != 0) [[unlikely]]
      raise_active_peaks(pool);
  }
  void raise_active_peaks(Pool& pool);

  Usage usage_;
  Pool pools_[2];  // small, large
  Peak peak_;      // of both together
  Figure inactive_, inactive_bytes_, reserved_, segments_, oversize_allocations_, oversize_segments_;
};

}  // namespace memwall
