// What lives in a tier at an instant.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gui/model/open_run.h"

namespace memwall::gui {

struct ResidentRow {
  StorageId storage = kNoStorage;
  Bytes bytes = 0;
  StorageKind kind = StorageKind::unknown;
  Time begin{}, end{};  // of its stay in the tier
};

struct ResidentSet {
  std::uint32_t tier = 0;
  Time time{};
  std::vector<ResidentRow> rows;  // largest first, then by number
  Bytes requested = 0;            // their sum and the untracked bytes
  Bytes untracked = 0;
  Bytes allocated = 0, reserved = 0;  // as the allocator counts; 0 where the run does not say
  std::array<Bytes, kStorageKinds> by_kind{};
};
// After all that changes in the instant. Of the instant at which the tier holds most: what lives when it does, within
// it. Throws InputError. REQUIRES: run.history is loaded; tier < tiers of the machine.
ResidentSet resident_set(const OpenRun& run, std::uint32_t tier, Time time);

// Who made a storage: the first op that writes it, else the one that allocated it. Nothing where it was there before
// the first op, or the run does not tell. The allocation is looked for where its first stay begins, if run.history is
// loaded. Throws InputError.
std::optional<OpId> maker_of(const OpenRun& run, StorageId storage);

// The op that frees it, looked for where its last stay ends. Throws InputError.
std::optional<OpId> free_of(const OpenRun& run, StorageId storage);

// A storage as people see it: its label, else the op that made it; with module and phase of that. Throws InputError.
struct StorageName {
  std::string label, module;
  Phase phase = Phase::unknown;
};
// Without run.history the label is not known. REQUIRES: the storage is one of the run's.
StorageName name_of(const OpenRun& run, StorageId storage);

// Why the peak is as high as it is, in sentences: instant and step, kinds and phases, the largest storages and who made
// them, what is kept from forward for backward, fragmentation, what is missing to fit.
struct PeakExplanation {
  std::uint32_t tier = 0;
  Time time{};
  std::vector<std::string> sentences;
  std::vector<StorageId> largest;  // at most ten
};
// As find_peak (traces/run/peak.h) has it. Who made a storage is looked up for the largest kMostMakers; how much the
// rest hold is said. Throws InputError. REQUIRES: as resident_set.
inline constexpr std::size_t kMostMakers = 2000;
PeakExplanation explain_peak(const OpenRun& run, std::uint32_t tier);

}  // namespace memwall::gui
