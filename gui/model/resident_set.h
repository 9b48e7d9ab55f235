// What lives in a tier at an instant, and what its peak is made of.
#pragma once

#include <array>
#include <cstdint>
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
// REQUIRES: run.history is loaded; tier < tiers of the machine.
ResidentSet resident_set(const OpenRun& run, std::uint32_t tier, Time time);

// A storage as people see it: its label, else the op that wrote it first; with module and phase of that.
struct StorageName {
  std::string label, module;
  Phase phase = Phase::unknown;
};
StorageName name_of(const OpenRun& run, StorageId storage);

// Why the peak is as high as it is, in sentences: instant and step, kinds and phases, the largest storages and who made
// them, what is kept from forward for backward, fragmentation, what is missing to fit.
struct PeakExplanation {
  std::uint32_t tier = 0;
  Time time{};
  std::vector<std::string> sentences;
  std::vector<StorageId> largest;  // at most ten
};
PeakExplanation explain_peak(const OpenRun& run, std::uint32_t tier);

}  // namespace memwall::gui
