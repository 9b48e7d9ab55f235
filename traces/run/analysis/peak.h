// The peak of a tier: which storages make it, what they are for, who made them.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "traces/run/run.h"

namespace memwall {

inline constexpr int kPhases = 5;

struct PeakStorage {
  StorageId storage = kNoStorage;
  Bytes bytes = 0;  // as requested
  StorageKind kind = StorageKind::unknown;
  std::string label;             // the storage's label, else the operator that wrote it first, else ""
  std::string module;            // of the first op that wrote it, "" if unknown
  Phase phase = Phase::unknown;  // likewise
  Time begin{}, end{};           // its residency in the tier that covers the peak
};

struct Peak {
  int tier = 0;                                // index into Machine::tiers
  Time time{};                                 // the instant at which allocated was highest, first time
  Bytes allocated = 0;                         // as the allocator counts, rounding and untracked bytes included
  Bytes requested = 0;                         // the sum of `by_kind`
  std::array<Bytes, kStorageKinds> by_kind{};  // requested; untracked bytes count as unknown
  std::array<Bytes, kPhases> by_phase{};       // requested, by the phase that made the storage; preexisting: unknown
  std::size_t storages = 0;                    // how many live
  std::vector<PeakStorage> largest;            // at most `limit`, largest first, then by number
};

// Within one instant the peak is where the simulation found it: after the begins, before the ends.
// REQUIRES: tier < run.machine.tiers.size().
Peak find_peak(const Run& run, int tier, std::size_t limit = 10);
std::vector<Peak> find_peaks(const Run& run, std::size_t limit = 10);  // of every tier

}  // namespace memwall
