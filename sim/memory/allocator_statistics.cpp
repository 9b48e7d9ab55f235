#include "sim/memory/allocator_statistics.h"

#include <algorithm>

#include "sim/memory/allocator_counters.h"

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

void AllocatorCounters::begin_wait(bool large, Bytes size, Bytes requested) {
  Pool& pool = pools_[large];
  --pool.blocks;
  pool.bytes -= size;
  usage_.allocated -= size;
  usage_.requested -= requested;
  ++pool.waiting;
  pool.waiting_bytes += size;
}

void AllocatorCounters::end_wait(bool large, Bytes size, Bytes requested) {
  Pool& pool = pools_[large];
  pool.requested -= requested;
  --pool.waiting;
  pool.waiting_bytes -= size;
}

void AllocatorCounters::add_waiting(bool large, Bytes size, Bytes requested) {
  Pool& pool = pools_[large];
  ++pool.calls;
  pool.size_sum += size;
  pool.requested_sum += requested;
  pool.requested += requested;
  ++pool.waiting;
  pool.waiting_bytes += size;
  raise_peaks(pool);
}

void AllocatorCounters::raise_active_peaks(Pool& pool) {
  const Pool &small = pools_[0], &large = pools_[1];
  pool.peak.active = std::max(pool.peak.active, pool.blocks + pool.waiting);
  pool.peak.active_bytes = std::max(pool.peak.active_bytes, pool.bytes + pool.waiting_bytes);
  peak_.active = std::max(peak_.active, small.blocks + large.blocks + small.waiting + large.waiting);
  peak_.active_bytes = std::max(peak_.active_bytes, active_bytes());
}

PoolStatistics AllocatorCounters::Figure::statistics() const {
  const auto of = [](std::int64_t current, std::int64_t highest, std::int64_t sum) {
    return Statistic{current, highest, sum, sum - current};
  };
  return {of(now[0] + now[1], peak_of_both, increases[0] + increases[1]), of(now[0], peak[0], increases[0]),
          of(now[1], peak[1], increases[1])};
}

AllocatorStatistics AllocatorCounters::statistics() const {
  AllocatorStatistics s;
  const auto fill = [&](std::size_t of, const Pool& pool) {
    const auto figure = [](std::int64_t current, std::int64_t highest, std::int64_t sum) {
      return Statistic{current, highest, sum, sum - current};
    };
    const Peak& peak = pool.peak;
    s.allocation[of] = figure(pool.blocks, peak.blocks, pool.calls);
    s.active[of] = figure(pool.blocks + pool.waiting, std::max(peak.active, peak.blocks), pool.calls);
    s.allocated_bytes[of] = figure(pool.bytes, peak.bytes, pool.size_sum);
    s.active_bytes[of] =
        figure(pool.bytes + pool.waiting_bytes, std::max(peak.active_bytes, peak.bytes), pool.size_sum);
    s.requested_bytes[of] = figure(pool.requested, peak.requested, pool.requested_sum);
  };
  const Pool &small = pools_[0], &large = pools_[1];
  fill(0, {.blocks = small.blocks + large.blocks,
           .bytes = small.bytes + large.bytes,
           .requested = small.requested + large.requested,
           .peak = peak_,
           .calls = small.calls + large.calls,
           .size_sum = small.size_sum + large.size_sum,
           .requested_sum = small.requested_sum + large.requested_sum,
           .waiting = small.waiting + large.waiting,
           .waiting_bytes = small.waiting_bytes + large.waiting_bytes});
  fill(1, small);
  fill(2, large);
  s.segment = segments_.statistics();
  s.inactive_split = inactive_.statistics();
  s.reserved_bytes = reserved_.statistics();
  s.inactive_split_bytes = inactive_bytes_.statistics();
  s.oversize_allocations = oversize_allocations_.statistics()[0];
  s.oversize_segments = oversize_segments_.statistics()[0];
  s.num_ooms = out_of_memory;
  s.num_sync_all_streams = synchronizations;
  return s;
}

}  // namespace memwall
