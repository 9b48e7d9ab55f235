// Why a tier gets as full as it does.
#pragma once

#include <string>
#include <vector>

#include "gui/model/open_run.h"

namespace memwall::gui {

// Why the peak is as high as it is, in sentences: instant and step, kinds and phases, the largest storages and who made
// them, what is kept from forward for backward, fragmentation, what is missing to fit.
struct PeakExplanation {
  std::uint32_t tier = 0;
  Time time{};
  std::vector<std::string> sentences;
  std::vector<StorageId> largest;  // at most ten
};
// As find_peak (traces/run/analysis/peak.h) has it. Who made a storage is looked up for the largest kMostMakers; how much the
// rest hold is said. Throws InputError. REQUIRES: as live_set.
inline constexpr std::size_t kMostMakers = 2000;
PeakExplanation explain_peak(const OpenRun& run, std::uint32_t tier);

}  // namespace memwall::gui
