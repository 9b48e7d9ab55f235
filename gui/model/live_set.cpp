#include "gui/model/live_set.h"

#include <algorithm>

namespace memwall::gui {
namespace {

constexpr std::size_t kMostPoints = 65536;  // of one instant

bool larger(const LiveRow& a, const LiveRow& b) {
  return a.bytes != b.bytes ? a.bytes > b.bytes : a.storage < b.storage;
}

// As the allocator counts after the instant.
void count_allocator(const OpenRun& run, TierLiveSet& set) {
  const std::vector<MemoryHigh> points = run.source->memory(set.tier, set.time, set.time, kMostPoints);
  for (const MemoryHigh& point : points)
    if (point.time <= set.time) {
      set.allocated = point.allocated;
      set.reserved = point.reserved;
    }
}

}  // namespace

TierLiveSet live_set(const OpenRun& run, std::uint32_t tier, Time time) {
  const ResidencyHistory& history = *run.history;
  const auto& tiers = run.outline().run.result.tiers;
  TierLiveSet set;
  set.tier = tier;
  set.time = time;
  set.untracked = history.untracked(tier);
  std::vector<std::uint32_t> alive;
  if (tier < tiers.size() && time == tiers[tier].peak_time) {
    alive = run.source->at_peak(tier);
    std::erase_if(alive, [&](std::uint32_t row) { return row >= history.residencies().size(); });
    set.allocated = tiers[tier].peak_allocated;
    set.reserved = tiers[tier].peak_usage.reserved;
  } else {
    alive = history.alive(tier, time);
    count_allocator(run, set);
  }
  set.requested = set.untracked;
  set.by_kind[static_cast<std::size_t>(StorageKind::unknown)] = set.untracked;
  set.rows.reserve(alive.size());
  for (const std::uint32_t i : alive) {
    const Residency& residency = history.residencies()[i];
    const Bytes bytes = history.storages().bytes[residency.storage];
    const StorageKind kind = history.storages().kind[residency.storage];
    set.rows.push_back({residency.storage, bytes, kind, residency.begin, residency.end});
    set.requested += bytes;
    set.by_kind[static_cast<std::size_t>(kind)] += bytes;
  }
  std::sort(set.rows.begin(), set.rows.end(), larger);
  return set;
}

}  // namespace memwall::gui
