#include "sim/engine/tier_memory.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>

#include "sim/error.h"

namespace memwall {
namespace {
constexpr Bytes kUnlimited = Bytes{1} << 60;
}

TierAllocators tier_allocators(const Machine& machine, const std::string& device_allocator,
                               const AllocatorSettings& settings) {
  return {.device =
              [&machine, device_allocator, settings](std::size_t tier, Bytes capacity) {
                const Tier& memory = machine.tiers[tier];
                const double total = static_cast<double>(memory.capacity) * memory.compression_ratio;
                return make_allocator(device_allocator, capacity, settings, static_cast<Bytes>(total));
              },
          .pinned_reserve_segment = settings.pinned_reserve_segment_size,
          .pinned_pool = settings.pinned_pool};
}

TierMemory::TierMemory(const Trace& trace, const RankMachine& ranks, const TierAllocators& allocators,
                       Observer* observer)
    : trace_(trace),
      observer_(observer),
      tiers_(ranks.tiers.size()),
      where_(trace.storages.size()),
      copies_(ranks, trace) {
  assert(trace.storages.size() < std::size_t{1} << 31);
  const std::vector<Bytes> untracked = untracked_by_tier(ranks, trace);
  for (std::size_t i = 0; i < tiers_.size(); ++i) {
    const Tier& tier = ranks.tiers[i];
    TierState& state = tiers_[i];
    state.capacity = tier.holds();
    state.untracked = untracked[i];
    const Bytes left = std::max<Bytes>(0, state.capacity - state.untracked);
    state.main = tier.tier_class == TierClass::device ? allocators.device(i, left) : make_ideal_allocator(left);
    if (tier.tier_class == TierClass::host)
      state.pinned = allocators.pinned_pool ? make_pinned_allocator(left, allocators.pinned_reserve_segment)
                                            : make_unpooled_pinned_allocator(left);
    if (state.untracked > state.capacity) {
      state.result.missing = state.untracked - state.capacity;
      state.unlimited = true;
      state.main->lift_limits();
    }
    // Address space only: what is never written to takes no memory.
    if (tier.tier_class == TierClass::device) state.changes.reserve(trace.storages.size() * 2);
    state.by_kind[static_cast<int>(StorageKind::unknown)] = state.untracked;
    state.result.peak_usage = usage(state);
    state.result.peak_allocated = state.result.peak_usage.allocated;
    state.result.peak_reserved = state.result.peak_usage.reserved;
    state.result.pressure.at_peak_reserved = state.result.peak_usage;
    std::copy(std::begin(state.by_kind), std::end(state.by_kind), state.result.peak_by_kind);
  }
}

Allocator& TierMemory::allocator_of(TierState& tier, const Storage& storage) const {
  return tier.pinned && storage.pinned ? *tier.pinned : *tier.main;
}

Usage TierMemory::usage(const TierState& tier) const {
  Usage sum = tier.main->usage();
  if (tier.pinned) {
    const Usage& pinned = tier.pinned->usage();
    sum.allocated += pinned.allocated;
    sum.requested += pinned.requested;
    sum.reserved += pinned.reserved;
  }
  sum.allocated += tier.untracked;
  sum.requested += tier.untracked;
  sum.reserved += tier.untracked;
  return sum;
}

bool TierMemory::place(Time now, StorageId storage, int tier) {
  assert(where_[storage].tier < 0);
  TierState& state = tiers_[tier];
  const Storage& s = trace_.storages[storage];
  Allocator& allocator = allocator_of(state, s);
  // Two allocators of one tier share its capacity.
  if (state.pinned && !state.unlimited) {
    const Allocator& other = &allocator == state.main.get() ? *state.pinned : *state.main;
    allocator.set_capacity(std::max<Bytes>(0, state.capacity - state.untracked - other.usage().reserved));
  }
  const std::optional<Address> address = allocator.allocate(s.bytes, s.stream);
  if (!address) {
    ++state.result.pressure.ooms;
    return false;
  }
  if (!copies_.all_once() && !place_further(storage, tier)) [[unlikely]] {
    allocator.free(*address);
    ++state.result.pressure.ooms;
    return false;
  }
  where_[storage] = {*address, static_cast<std::int16_t>(tier)};
  state.by_kind[static_cast<int>(s.kind)] += s.bytes;
  note(now, storage, tier, true);
  return true;
}

bool TierMemory::place_further(StorageId storage, int tier) {
  const std::uint32_t copies = copies_.of(storage, static_cast<std::size_t>(tier));
  if (copies == 1) return true;
  TierState& state = tiers_[tier];
  const Storage& s = trace_.storages[storage];
  Allocator& allocator = allocator_of(state, s);
  std::vector<Address>& addresses = further_[storage];
  while (addresses.size() + 1 < copies) {
    const std::optional<Address> address = allocator.allocate(s.bytes, s.stream);
    if (!address) {
      remove_further(storage, tier);
      return false;
    }
    addresses.push_back(*address);
    state.by_kind[static_cast<int>(s.kind)] += s.bytes;
  }
  return true;
}

void TierMemory::remove_further(StorageId storage, int tier) {
  const auto further = further_.find(storage);
  if (further == further_.end()) return;
  const Storage& s = trace_.storages[storage];
  for (const Address address : further->second) {
    allocator_of(tiers_[tier], s).free(address);
    tiers_[tier].by_kind[static_cast<int>(s.kind)] -= s.bytes;
  }
  further_.erase(further);
}

void TierMemory::place_unlimited(Time now, StorageId storage, int tier) {
  TierState& state = tiers_[tier];
  if (!state.unlimited) {
    state.unlimited = true;
    const Usage used = usage(state);
    state.result.refused = {.storage = storage, .time = now, .usage = used, .by_kind = {}};
    std::copy(std::begin(state.by_kind), std::end(state.by_kind), state.result.refused.by_kind);
    // An arena is reserved as a whole, and may be larger than the tier before anything is in it.
    const Bytes bytes = trace_.storages[storage].bytes * copies_.of(storage, static_cast<std::size_t>(tier));
    const Bytes over = std::max(used.allocated + bytes, used.reserved) - state.capacity;
    // Where enough bytes are free but in pieces, as much as was asked for is missing in one piece: unless more than
    // fits lives later on.
    state.missing_in_one_piece = over <= 0;
    state.result.missing = std::max(state.result.missing, over > 0 ? over : std::max<Bytes>(1, bytes));
    state.main->lift_limits();
    if (state.pinned) state.pinned->lift_limits();
  }
  if (!place(now, storage, tier))
    throw std::logic_error("An allocator without limits refuses storage " + std::to_string(storage) + " of trace '" +
                           trace_.name + "'.");
}

void TierMemory::remove(Time now, StorageId storage) {
  Where& where = where_[storage];
  assert(where.tier >= 0);
  TierState& state = tiers_[where.tier];
  const Storage& s = trace_.storages[storage];
  allocator_of(state, s).free(where.address);
  state.by_kind[static_cast<int>(s.kind)] -= s.bytes;
  const int tier = where.tier;
  if (!copies_.all_once()) [[unlikely]]
    remove_further(storage, tier);
  where.tier = -1;
  note(now, storage, tier, false);
}

void TierMemory::note(Time now, StorageId storage, int tier, bool begins) {
  TierState& state = tiers_[tier];
  state.changes.push_back(storage * 2 + (begins ? 1 : 0));
  const Usage used = usage(state);
  TierResult& result = state.result;
  if (begins) {
    const Usage& before = result.pressure.at_peak_reserved;
    if (used.reserved > before.reserved || (used.reserved == before.reserved && used.allocated > before.allocated)) {
      result.peak_reserved = used.reserved;
      result.pressure.at_peak_reserved = used;
      result.pressure.peak_reserved_time = now;
    }
    if (state.unlimited && used.allocated > state.capacity) {
      if (std::exchange(state.missing_in_one_piece, false)) result.missing = 0;
      result.missing = std::max(result.missing, used.allocated - state.capacity);
    }
    if (used.allocated > result.peak_allocated) {
      result.peak_allocated = used.allocated;
      result.peak_usage = used;
      result.peak_time = now;
      state.changes_until_peak = state.changes.size();
      std::copy(std::begin(state.by_kind), std::end(state.by_kind), result.peak_by_kind);
    }
  }
  if (observer_) {
    observer_->on_memory(now, tier, used);
    observer_->on_residency(now, storage, tier, begins);
  }
}

Bytes TierMemory::free_bytes(int tier) const {
  const TierState& state = tiers_[tier];
  return state.unlimited ? kUnlimited : state.capacity - usage(state).allocated;
}

TierMemory::PageLocked TierMemory::page_locked(int tier) const {
  const Allocator& pinned = *tiers_[static_cast<std::size_t>(tier)].pinned;
  return {pinned.usage().reserved, pinned.events().device_mallocs, pinned.events().device_frees};
}

bool TierMemory::fits() const {
  return std::all_of(tiers_.begin(), tiers_.end(), [](const TierState& t) { return t.result.missing == 0; });
}

std::vector<TierResult> TierMemory::results() const {
  std::vector<TierResult> results;
  for (std::size_t i = 0; i < tiers_.size(); ++i) {
    const TierState& state = tiers_[i];
    TierResult result = state.result;
    const auto add = [&](const AllocatorEvents& e) {
      result.allocator.device_mallocs += e.device_mallocs;
      result.allocator.device_frees += e.device_frees;
      result.allocator.retries += e.retries;
      result.allocator.maps += e.maps;
      result.allocator.unmaps += e.unmaps;
      result.allocator.pages_mapped += e.pages_mapped;
      result.allocator.pages_unmapped += e.pages_unmapped;
    };
    add(state.main->events());
    if (state.pinned) add(state.pinned->events());
    if (state.changes_until_peak == 0) {  // nothing lives there at its peak
      results.push_back(std::move(result));
      continue;
    }
    std::vector<bool> lives(trace_.storages.size(), false);
    for (std::size_t c = 0; c < state.changes_until_peak; ++c) lives[state.changes[c] / 2] = state.changes[c] % 2 == 1;
    for (StorageId s = 0; s < lives.size(); ++s)
      if (lives[s]) result.largest_at_peak.push_back(s);
    auto& largest = result.largest_at_peak;
    const auto larger = [&](StorageId a, StorageId b) {
      const Bytes x = trace_.storages[a].bytes, y = trace_.storages[b].bytes;
      return x != y ? x > y : a < b;
    };
    const auto middle = largest.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(10, largest.size()));
    std::partial_sort(largest.begin(), middle, largest.end(), larger);
    largest.erase(middle, largest.end());
    results.push_back(std::move(result));
  }
  return results;
}

}  // namespace memwall
