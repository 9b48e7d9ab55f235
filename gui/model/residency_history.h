// Which storage lives in which tier, when: residencies, and memory by kind at every instant.
//
// On the clock of the allocator, which is the host's; or, of residencies on the device's (device_residency in
// traces/run/analysis/device_occupancy.h), on that: what ends in an instant is then gone before anything begins.
//
// Answers for an instant and for a range in the logarithm of the number of residencies plus what they
// return: totals stand at every kCheckpoint-th change. Immutable once built.
//
// In one instant much can happen. The file says in which order residencies began; where others ended in the same
// instant, the tier's requested bytes (Run::memory) tell when. The instant at which a tier holds most is exact, kind by
// kind; elsewhere within an instant the sum is, and which of two storages of one size ended first may be a guess.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "gui/model/time_range.h"
#include "traces/run/run_source.h"

namespace memwall::gui {

using KindBytes = std::array<Bytes, kStorageKinds>;

// The highest stack of a piece of the screen: values at the instant of the largest sum within it.
struct KindHigh {
  Time time{};
  KindBytes bytes{};
};

class TierChanges;

class ResidencyHistory {
 public:
  // Throws InputError, LoadCancelled.
  static std::shared_ptr<const ResidencyHistory> load(const RunSource& source, const LoadProgress& progress);
  // Of the same run, `on_device` being its residencies on the device's clock. Throws likewise.
  static std::shared_ptr<const ResidencyHistory> load_on_device(const RunSource& source,
                                                                std::vector<Residency> on_device,
                                                                const LoadProgress& progress);

  const StorageColumns& storages() const { return storages_; }
  const std::vector<Residency>& residencies() const { return residencies_; }  // ascending in begin
  // Requested bytes by kind at an instant, as memory_by_kind(whole run, tier): after all that changes in it.
  KindBytes by_kind(std::uint32_t tier, Time time) const;
  // `pieces` equal pieces of the range, each with its highest stack; what a piece begins with counts.
  // The first of several that are equally high. To a piece with hundreds of changes belong those within 32 changes of
  // its ends too: an eighth of a pixel. REQUIRES: pieces >= 1.
  std::vector<KindHigh> highs(std::uint32_t tier, TimeRange range, std::size_t pieces) const;
  // The highest stack of all, and its instant.
  KindHigh highest(std::uint32_t tier) const;
  // Rows of residencies() that live in a tier at an instant (begin <= time < end), ascending. What lives until the end of
  // the run lives at its end too.
  std::vector<std::uint32_t> alive(std::uint32_t tier, Time time) const;
  // Rows of residencies() of one storage, ascending in begin: its life across tiers.
  std::vector<std::uint32_t> life(StorageId storage) const;
  // Bytes in no storage that a tier holds all the time; part of `unknown` above.
  Bytes untracked(std::uint32_t tier) const { return untracked_[tier]; }
  std::size_t resident_bytes() const;

 private:
  ResidencyHistory() = default;
  StorageColumns storages_;
  std::vector<Residency> residencies_;
  std::vector<std::shared_ptr<const TierChanges>> tiers_;
  std::vector<Bytes> untracked_;           // per tier
  std::vector<std::uint32_t> by_storage_;  // rows of residencies_, by storage, then begin
  Time end_{};                             // of the run
};

}  // namespace memwall::gui
