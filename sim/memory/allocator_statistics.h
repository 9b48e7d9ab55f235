// The figures of torch.cuda.memory_stats(), under PyTorch's names.
//
// Source: pytorch/pytorch, c10/core/CachingDeviceAllocator.h (DeviceStats) and torch/cuda/memory.py.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "sim/units.h"

namespace memwall {

struct Statistic {
  std::int64_t current = 0, peak = 0;
  std::int64_t allocated = 0, freed = 0;  // added up since the beginning; current = allocated - freed
};

// Of all pools together, of the small ones, of the large ones.
enum class StatisticOf : std::uint8_t { all, small_pool, large_pool };
using PoolStatistics = std::array<Statistic, 3>;  // by StatisticOf

struct AllocatorStatistics {
  // Counts.
  PoolStatistics allocation;      // blocks handed out
  PoolStatistics segment;         // obtained by cudaMalloc; mapping expandable pages does not count
  PoolStatistics active;          // blocks handed out, and freed ones that a stream may still use
  PoolStatistics inactive_split;  // free blocks in segments that are split; never of expandable segments
  // Bytes.
  PoolStatistics allocated_bytes, reserved_bytes, active_bytes, inactive_split_bytes, requested_bytes;
  Statistic oversize_allocations, oversize_segments;  // of max_split_size or more
  std::int64_t num_alloc_retries = 0, num_ooms = 0, num_sync_all_streams = 0;
  std::int64_t num_device_alloc = 0, num_device_free = 0;  // cudaMalloc and map calls; cudaFree and unmap calls
  Bytes max_split_size = -1;                               // -1 = no limit, as PyTorch prints it
};

// "allocated_bytes.all.current" and so on, in the order of torch.cuda.memory_stats().
std::vector<std::pair<std::string, std::int64_t>> named_statistics(const AllocatorStatistics& statistics);

}  // namespace memwall
