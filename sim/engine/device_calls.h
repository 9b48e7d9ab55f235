// What host threads spend in the calls to the device that a caching allocator makes: cudaMalloc, cudaFree, and those
// that map and unmap pages of expandable segments.
//
// A simulated step stands for one of many. The cache that it fills from empty is full in every later one, so memory
// that a caching allocator obtains costs time only where it takes the place of memory that it gave back before. What is
// given back always costs time: the device must have done everything first. Calls that the trace itself shows, with
// their captured cost, are not charged once more.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/machine/machine.h"
#include "sim/memory/allocator.h"
#include "sim/trace/trace.h"

namespace memwall {

class DeviceCalls {
 public:
  // `costs` must outlive it.
  DeviceCalls(const Trace& trace, const HostCosts& costs);

  struct Cost {
    Duration calls{};
    bool waits_for_device = false;
  };
  // Of one allocation by a thread, by what the allocator had done before and after it.
  Cost charge(const HostThread& thread, const AllocatorEvents& before, const AllocatorEvents& after);

 private:
  // Calls of one kind and their opposite.
  struct Balance {
    std::uint64_t shown_obtained = 0, shown_returned = 0;  // in the trace, and not yet set against a call here
    std::uint64_t missing = 0;                             // given back, and not obtained again
    std::uint64_t charge_obtained(std::uint64_t calls);
    std::uint64_t charge_returned(std::uint64_t calls);
  };

  // Of one rank: its allocator obtains what its own gave back.
  struct RankBalance {
    Balance segments, pages;
  };

  const HostCosts& costs_;
  std::vector<RankBalance> ranks_;  // as HostThread::rank
};

}  // namespace memwall
