#include "sim/allocator_statistics.h"

#include <algorithm>

#include "sim/allocator_counters.h"

namespace memwall {
namespace {

using Named = std::vector<std::pair<std::string, std::int64_t>>;

void append(Named& named, const std::string& name, const Statistic& statistic) {
  named.emplace_back(name + ".current", statistic.current);
  named.emplace_back(name + ".peak", statistic.peak);
  named.emplace_back(name + ".allocated", statistic.allocated);
  named.emplace_back(name + ".freed", statistic.freed);
}

void append(Named& named, const std::string& name, const PoolStatistics& statistics) {
  append(named, name + ".all", statistics[static_cast<std::size_t>(StatisticOf::all)]);
  append(named, name + ".small_pool", statistics[static_cast<std::size_t>(StatisticOf::small_pool)]);
  append(named, name + ".large_pool", statistics[static_cast<std::size_t>(StatisticOf::large_pool)]);
}

}  // namespace

std::vector<std::pair<std::string, std::int64_t>> named_statistics(const AllocatorStatistics& s) {
  Named named;
  append(named, "allocation", s.allocation);
  append(named, "segment", s.segment);
  append(named, "active", s.active);
  append(named, "inactive_split", s.inactive_split);
  append(named, "allocated_bytes", s.allocated_bytes);
  append(named, "reserved_bytes", s.reserved_bytes);
  append(named, "active_bytes", s.active_bytes);
  append(named, "inactive_split_bytes", s.inactive_split_bytes);
  append(named, "requested_bytes", s.requested_bytes);
  append(named, "oversize_allocations", s.oversize_allocations);
  append(named, "oversize_segments", s.oversize_segments);
  named.emplace_back("num_alloc_retries", s.num_alloc_retries);
  named.emplace_back("num_ooms", s.num_ooms);
  named.emplace_back("num_sync_all_streams", s.num_sync_all_streams);
  named.emplace_back("num_device_alloc", s.num_device_alloc);
  named.emplace_back("num_device_free", s.num_device_free);
  named.emplace_back("max_split_size", s.max_split_size);
  std::sort(named.begin(), named.end());  // as torch.cuda.memory_stats() does
  return named;
}

AllocatorStatistics AllocatorCounters::statistics() const {
  AllocatorStatistics s;
  const auto fill = [&](std::size_t of, const Now& now, const Peak& peak, std::int64_t calls, Bytes sizes,
                        Bytes requests) {
    const auto figure = [](std::int64_t current, std::int64_t highest, std::int64_t sum) {
      return Statistic{current, highest, sum, sum - current};
    };
    s.allocation[of] = figure(now.blocks, peak.blocks, calls);
    s.active[of] = figure(now.blocks + now.waiting, peak.active, calls);
    s.allocated_bytes[of] = figure(now.bytes, peak.bytes, sizes);
    s.active_bytes[of] = figure(now.bytes + now.waiting_bytes, peak.active_bytes, sizes);
    s.requested_bytes[of] = figure(now.requested, peak.requested, requests);
  };
  const Pool &small = pools_[0], &large = pools_[1];
  fill(0, both(), peak_, small.calls + large.calls, small.size_sum + large.size_sum,
       small.requested_sum + large.requested_sum);
  fill(1, small.now, small.peak, small.calls, small.size_sum, small.requested_sum);
  fill(2, large.now, large.peak, large.calls, large.size_sum, large.requested_sum);
  s.segment = segments_;
  s.inactive_split = inactive_;
  s.reserved_bytes = reserved_;
  s.inactive_split_bytes = inactive_bytes_;
  s.oversize_allocations = oversize_allocations_;
  s.oversize_segments = oversize_segments_;
  s.num_ooms = out_of_memory;
  s.num_sync_all_streams = synchronizations;
  return s;
}

}  // namespace memwall
