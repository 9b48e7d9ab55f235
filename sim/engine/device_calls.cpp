#include "sim/engine/device_calls.h"

#include <algorithm>
#include <string>

namespace memwall {
namespace {

// What is left of `calls`; `pool` pays for the others.
std::uint64_t take_from(std::uint64_t& pool, std::uint64_t calls) {
  const std::uint64_t paid = std::min(pool, calls);
  pool -= paid;
  return calls - paid;
}

}  // namespace

std::uint64_t DeviceCalls::Balance::charge_obtained(std::uint64_t calls, bool all) {
  const std::uint64_t replacing = std::min(missing, calls);
  missing -= replacing;
  return take_from(shown_obtained, all ? calls : replacing);
}

std::uint64_t DeviceCalls::Balance::charge_returned(std::uint64_t calls) {
  missing += calls;
  return take_from(shown_returned, calls);
}

DeviceCalls::DeviceCalls(const Trace& trace, const HostCosts& costs, bool first_step, bool pinned_pool)
    : costs_(costs), first_step_(first_step), pinned_pool_(pinned_pool), ranks_(1) {
  for (const HostThread& thread : trace.threads) ranks_.resize(std::max<std::size_t>(ranks_.size(), thread.rank + 1u));
  for (const Op& op : trace.ops) {
    if (op.kind != OpKind::host_work || op.added) continue;
    const std::string& name = trace.strings[op.name];
    RankBalance& shown = ranks_[trace.threads[op.thread].rank];
    if (name == "cudaMalloc" || name == "hipMalloc") ++shown.segments.shown_obtained;
    if (name == "cudaFree" || name == "hipFree") ++shown.segments.shown_returned;
    if (name == "cuMemMap" || name == "hipMemMap") ++shown.pages.shown_obtained;
    if (name == "cuMemUnmap" || name == "hipMemUnmap") ++shown.pages.shown_returned;
  }
}

DeviceCalls::Cost DeviceCalls::charge(const HostThread& thread, const AllocatorEvents& before,
                                      const AllocatorEvents& after) {
  RankBalance& rank = ranks_[thread.rank];
  const std::uint64_t maps = after.maps - before.maps, unmaps = after.unmaps - before.unmaps;
  const auto times = [](std::uint64_t count, Duration each) { return static_cast<std::int64_t>(count) * each; };
  Cost cost;
  const std::uint64_t returned = rank.segments.charge_returned(after.device_frees - before.device_frees - unmaps);
  const std::uint64_t unmapped = rank.pages.charge_returned(after.pages_unmapped - before.pages_unmapped);
  const std::uint64_t obtained =
      rank.segments.charge_obtained(after.device_mallocs - before.device_mallocs - maps, first_step_);
  const std::uint64_t mapped = rank.pages.charge_obtained(after.pages_mapped - before.pages_mapped, first_step_);
  cost.waits_for_device = returned + unmapped > 0;
  cost.calls = times(returned, costs_.device_free) + times(unmapped, costs_.page_unmap) +
               times(obtained, costs_.device_malloc) + times(mapped, costs_.page_map);
  return cost;
}

DeviceCalls::Cost DeviceCalls::pinning(std::uint64_t calls, Bytes bytes) const {
  const Duration locking = costs_.pinning > 0 ? from_seconds(static_cast<double>(bytes) / costs_.pinning) : Duration{};
  return {static_cast<std::int64_t>(calls) * costs_.pinned_allocation + locking, calls > 0};
}

Duration DeviceCalls::pinned_frees(std::uint64_t calls) const {
  return static_cast<std::int64_t>(calls) * costs_.device_free;
}

}  // namespace memwall
