// What lives in a tier at an instant.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "gui/model/open_run.h"

namespace memwall::gui {

struct LiveRow {
  StorageId storage = kNoStorage;
  Bytes bytes = 0;
  StorageKind kind = StorageKind::unknown;
  Time begin{}, end{};  // of its residency in the tier
};

struct TierLiveSet {
  std::uint32_t tier = 0;
  Time time{};
  std::vector<LiveRow> rows;  // largest first, then by number
  Bytes requested = 0;        // their sum and the untracked bytes
  Bytes untracked = 0;
  Bytes allocated = 0, reserved = 0;  // as the allocator counts; 0 where the run does not say
  std::array<Bytes, kStorageKinds> by_kind{};
};

// After all that changes in the instant. Of the instant at which the tier holds most: what lives when it does, within
// it. Throws InputError. REQUIRES: run.history is loaded; tier < tiers of the machine.
TierLiveSet live_set(const OpenRun& run, std::uint32_t tier, Time time);

}  // namespace memwall::gui
