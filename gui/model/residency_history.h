// Which storage lives in which tier, when: stays, and memory by kind at every instant.
//
// Answers for an instant and for a range in the logarithm of the number of stays plus what they
// return: totals stand at every kCheckpoint-th change. Immutable once built.
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

class ResidencyHistory {
 public:
  // Throws InputError, LoadCancelled.
  static std::shared_ptr<const ResidencyHistory> load(const RunSource& source, const LoadProgress& progress);

  const StorageColumns& storages() const { return storages_; }
  const std::vector<Residency>& stays() const { return stays_; }  // ascending in begin
  // Requested bytes by kind at an instant, as memory_by_kind(whole run, tier).
  KindBytes by_kind(std::uint32_t tier, Time time) const;
  // `pieces` equal pieces of the range, each with its highest stack. REQUIRES: pieces >= 1.
  std::vector<KindHigh> highs(std::uint32_t tier, TimeRange range, std::size_t pieces) const;
  // Rows of stays() that live in a tier at an instant (begin <= time < end), ascending.
  std::vector<std::uint32_t> alive(std::uint32_t tier, Time time) const;
  // Rows of stays() of one storage, ascending in begin: its life across tiers.
  std::vector<std::uint32_t> life(StorageId storage) const;
  std::size_t resident_bytes() const;

 private:
  // The builder decides what else is kept.
  struct Changes;
  ResidencyHistory() = default;
  StorageColumns storages_;
  std::vector<Residency> stays_;
  std::vector<std::shared_ptr<const Changes>> tiers_;
  std::vector<std::uint32_t> by_storage_;  // rows of stays_, by storage, then begin
};

}  // namespace memwall::gui
