#include "traces/run/analysis/host_use.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "sim/machine/shared_tier.h"
#include "sim/memory/allocator.h"
#include "sim/trace/ranks.h"
#include "traces/run/analysis/core_use.h"

namespace memwall {
namespace {

// Of a tier of the ranks' machine: what it is in the machine of one GPU, and whose it is.
struct TierPlace {
  std::size_t of_one = 0;
  std::vector<std::size_t> programs;  // indices into RankMachine::views
};

std::optional<TierPlace> place_of(const RankMachine& machine, std::size_t tier) {
  std::optional<TierPlace> place;
  for (std::size_t r = 0; r < machine.views.size(); ++r)
    for (std::size_t t = 0; t < machine.views[r].tier.size(); ++t) {
      if (machine.views[r].tier[t] != tier) continue;
      if (!place) place = TierPlace{t, {}};
      place->programs.push_back(r);
    }
  return place;
}

// The ranks of a program that share a tier with its first one.
std::vector<std::uint32_t> ranks_beside(const Rank& rank, std::uint32_t sharers) {
  std::vector<std::uint32_t> beside{rank.number};
  for (const std::uint32_t number : rank.stands_for)
    if (sharers == 0 || number / sharers == rank.number / sharers) beside.push_back(number);
  return beside;
}

// Sets whose memory it is; returns by how much what the run holds of a program's first rank is multiplied.
std::uint32_t set_ranks(const Run& run, const TierPlace& place, HostUse& use) {
  const Trace& trace = run.trace;
  const std::uint32_t sharers = sharers_of_tier(run.machine.one, place.of_one);
  std::uint32_t parts = 1, all = 0;
  if (trace.rank_table.empty()) {
    parts = ranks_in_tier(run.machine.one, place.of_one, trace.ranks);
    all = std::max(1u, trace.ranks);
    for (std::uint32_t number = 0; number < parts; ++number) use.ranks.push_back(number);
  }
  for (const std::size_t r : place.programs) {
    if (trace.rank_table.empty()) break;
    const Rank& rank = trace.rank_table[r];
    const std::vector<std::uint32_t> beside = ranks_beside(rank, sharers);
    parts = static_cast<std::uint32_t>(beside.size());
    all += 1 + static_cast<std::uint32_t>(rank.stands_for.size());
    use.ranks.insert(use.ranks.end(), beside.begin(), beside.end());
  }
  std::sort(use.ranks.begin(), use.ranks.end());
  use.hosts = std::max(1u, (all + static_cast<std::uint32_t>(use.ranks.size()) - 1) /
                               static_cast<std::uint32_t>(std::max<std::size_t>(1, use.ranks.size())));
  return parts;
}

void set_causes(const Run& run, std::size_t tier, Bytes parts, HostUse& use) {
  std::map<std::pair<StorageKind, bool>, Bytes> sums;
  for (const std::uint32_t index : run.at_peak[tier]) {
    const Storage& s = run.trace->storages[run.residency[index].storage];
    sums[{s.kind, s.pinned}] += s.bytes;
  }
  for (const auto& [key, bytes] : sums)
    if (bytes > 0) use.causes.push_back({key.first, key.second, bytes * parts});
  std::stable_sort(use.causes.begin(), use.causes.end(),
                   [](const HostMemoryCause& a, const HostMemoryCause& b) { return a.bytes > b.bytes; });
}

// What the allocator of page-locked memory obtained, done again from when storages come and go. At one instant those
// that go are first.
void set_page_locking(const Run& run, std::size_t tier, HostUse& use) {
  struct Change {
    Time time;
    bool begins;
    std::uint32_t residency;
  };
  const Trace& trace = run.trace;
  const AllocatorSettings settings = parse_allocator_settings(run.allocator_settings);
  const std::unique_ptr<Allocator> pool = settings.pinned_pool
                                              ? make_pinned_allocator(0, settings.pinned_reserve_segment_size)
                                              : make_unpooled_pinned_allocator(0);
  pool->lift_limits();
  std::vector<Change> changes;
  std::vector<Address> addresses(run.residency.size());
  Bytes obtained = 0;
  const auto allocate = [&](std::uint32_t index) {
    const Bytes before = pool->usage().reserved;
    const Storage& s = trace.storages[run.residency[index].storage];
    addresses[index] = pool->allocate(s.bytes, s.stream).value();
    obtained += pool->usage().reserved - before;
  };
  for (std::uint32_t i = 0; i < run.residency.size(); ++i) {
    const Residency& r = run.residency[i];
    if (r.tier != tier || !trace.storages[r.storage].pinned) continue;
    if (trace.storages[r.storage].preexisting && r.begin == Time{})
      allocate(i);
    else
      changes.push_back({r.begin, true, i});
    changes.push_back({r.end, false, i});
  }
  use.before_step = {pool->events().device_mallocs, obtained};
  std::stable_sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) {
    return a.time != b.time ? a.time < b.time : a.begins < b.begins;
  });
  for (const Change& change : changes) {
    if (change.begins)
      allocate(change.residency);
    else if (run.residency[change.residency].begin != run.residency[change.residency].end)
      pool->free(addresses[change.residency]);
  }
  use.in_first_step = {pool->events().device_mallocs - use.before_step.calls, obtained - use.before_step.bytes};
}

}  // namespace

std::vector<HostUse> host_use(const Run& run) {
  std::vector<HostUse> all;
  for (std::size_t t = 0; t < run.machine.tiers.size() && t < run.result.tiers.size(); ++t) {
    const Tier& tier = run.machine.tiers[t];
    const TierResult& result = run.result.tiers[t];
    if (tier.tier_class != TierClass::host || result.peak_reserved == 0) continue;
    const std::optional<TierPlace> place = place_of(run.machine, t);
    if (!place) continue;
    HostUse use;
    use.tier = tier.name;
    const Bytes parts = set_ranks(run, *place, use);
    use.usable = tier.holds() * parts;
    use.time = result.peak_time;
    use.peak_reserved = result.peak_reserved * parts;
    use.rounding = (result.peak_usage.allocated - result.peak_usage.requested) * parts;
    use.cached = (result.peak_reserved - result.peak_usage.allocated) * parts;
    if (t < run.at_peak.size() && !run.residency.empty()) {
      set_causes(run, t, parts, use);
      set_page_locking(run, t, use);
    }
    if (run.machine.one.tiers[place->of_one].name == "host") use.cores = core_use(run, place->programs);
    all.push_back(std::move(use));
  }
  return all;
}

}  // namespace memwall
