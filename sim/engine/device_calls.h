// What host threads spend in the calls to the device that allocators make: cudaMalloc, cudaFree, those that map and
// unmap pages of expandable segments, and cudaHostAlloc and cudaFreeHost of page-locked memory.
//
// A simulated step stands for one of many. The cache that it fills from empty is full in every later one, so memory
// that a caching allocator obtains costs time only where it takes the place of memory that it gave back before. What is
// given back always costs time: the device must have done everything first. Calls that the trace itself shows, with
// their captured cost, are not charged once more. Of the first step (SimulationOptions::first_step) everything costs
// time.
//
// PyTorch's pool of page-locked memory gives nothing back, so that it costs time in the first step alone; without a
// pool (AllocatorSettings::pinned_pool) every allocation and every free does. Page-locking waits for the device (CUDA
// C++ Programming Guide, implicit synchronization), and takes HostCosts::pinned_allocation and its bytes at
// HostCosts::pinning. cudaFreeHost takes what cudaFree does (assumed).
#pragma once

#include <cstdint>
#include <vector>

#include "sim/machine/machine.h"
#include "sim/memory/allocator.h"
#include "sim/trace/trace.h"

namespace memwall {

class DeviceCalls {
 public:
  // `costs` must outlive it. `pinned_pool`: AllocatorSettings::pinned_pool.
  DeviceCalls(const Trace& trace, const HostCosts& costs, bool first_step, bool pinned_pool);

  // Does page-locking cost time in this step?
  bool charges_pinning() const { return first_step_ || !pinned_pool_; }

  struct Cost {
    Duration calls{};
    bool waits_for_device = false;
  };
  // Of one allocation by a thread, by what the allocator had done before and after it.
  Cost charge(const HostThread& thread, const AllocatorEvents& before, const AllocatorEvents& after);
  // Of page-locking so many bytes in so many calls. REQUIRES: charges_pinning().
  Cost pinning(std::uint64_t calls, Bytes bytes) const;
  // Of giving back page-locked memory in so many calls.
  Duration pinned_frees(std::uint64_t calls) const;

 private:
  // Calls of one kind and their opposite.
  struct Balance {
    std::uint64_t shown_obtained = 0, shown_returned = 0;  // in the trace, and not yet set against a call here
    std::uint64_t missing = 0;                             // given back, and not obtained again
    std::uint64_t charge_obtained(std::uint64_t calls, bool all);
    std::uint64_t charge_returned(std::uint64_t calls);
  };

  // Of one rank: its allocator obtains what its own gave back.
  struct RankBalance {
    Balance segments, pages;
  };

  const HostCosts& costs_;
  bool first_step_, pinned_pool_;
  std::vector<RankBalance> ranks_;  // as HostThread::rank
};

}  // namespace memwall
