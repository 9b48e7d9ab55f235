// Who lives where: the allocators of all tiers, and the peaks they reach.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "sim/engine/observer.h"
#include "sim/engine/simulation.h"
#include "sim/machine/machine.h"
#include "sim/machine/rank_machine.h"
#include "sim/machine/tier_copies.h"
#include "sim/memory/allocator.h"
#include "sim/trace/trace.h"

namespace memwall {

// The allocators of a simulation. Host tiers take the pinned allocator for page-locked storages and count the others,
// storage tiers count bytes.
struct TierAllocators {
  // Of a tier of class device: its index, the bytes that it may reserve.
  std::function<std::unique_ptr<Allocator>(std::size_t tier, Bytes capacity)> device;
  Bytes pinned_reserve_segment = 0;
  bool pinned_pool = true;  // AllocatorSettings::pinned_pool
};

// By name, as make_allocator knows them. `machine` is not owned.
TierAllocators tier_allocators(const Machine& machine, const std::string& device_allocator,
                               const AllocatorSettings& settings = {});

class TierMemory {
 public:
  TierMemory(const Trace& trace, const RankMachine& ranks, const TierAllocators& allocators, Observer* observer);

  // Places a storage in a tier; false if it does not fit (nothing has changed then).
  // REQUIRES: the storage is in no tier.
  bool place(Time now, StorageId storage, int tier);
  // Of the last refusal: it is no shortage, room is being made.
  void retract_refusal(int tier) { --tiers_[static_cast<std::size_t>(tier)].result.pressure.ooms; }
  // The same, with the tier's memory taken as unlimited from now on: notes how much was missing.
  [[gnu::noinline]] void place_unlimited(Time now, StorageId storage, int tier);
  // REQUIRES: the storage is in a tier.
  void remove(Time now, StorageId storage);
  Bytes free_bytes(int tier) const;
  // What the tier's allocator has done so far; page-locked memory aside.
  const AllocatorEvents& events(int tier) const { return tiers_[static_cast<std::size_t>(tier)].main->events(); }
  // Page-locked memory of a tier: bytes that it holds, and calls so far. REQUIRES: it is of class host.
  struct PageLocked {
    Bytes bytes = 0;
    std::uint64_t obtained = 0, returned = 0;
  };
  PageLocked page_locked(int tier) const;
  // Where the storage lives now, or -1.
  int tier_of(StorageId storage) const { return where_[storage].tier; }
  bool is_host(int tier) const { return tiers_[static_cast<std::size_t>(tier)].pinned != nullptr; }
  void add_device_calls(int tier, Duration time) { tiers_[static_cast<std::size_t>(tier)].result.device_calls += time; }
  bool fits() const;
  // Peaks, with the largest storages at each.
  std::vector<TierResult> results() const;

 private:
  struct Where {
    Address address = 0;
    std::int16_t tier = -1;
  };
  struct TierState {
    std::unique_ptr<Allocator> main, pinned;  // pinned: host tiers only
    Bytes capacity = 0, untracked = 0;
    bool unlimited = false, missing_in_one_piece = false;
    Bytes by_kind[kStorageKinds] = {};
    // Begins and ends of storages here, in their order: the storage's number, doubled, and 1 where it begins.
    std::vector<std::uint32_t> changes;
    std::size_t changes_until_peak = 0;
    TierResult result;
  };
  Allocator& allocator_of(TierState& tier, const Storage& storage) const;
  // Beyond the first, where a storage counts several times.
  [[gnu::noinline]] bool place_further(StorageId storage, int tier);
  [[gnu::noinline]] void remove_further(StorageId storage, int tier);
  Usage usage(const TierState& tier) const;
  void note(Time now, StorageId storage, int tier, bool begins);

  const Trace& trace_;
  Observer* observer_;
  std::vector<TierState> tiers_;
  std::vector<Where> where_;
  const TierCopies copies_;
  std::unordered_map<StorageId, std::vector<Address>> further_;  // of storages that count more than once
};

}  // namespace memwall
