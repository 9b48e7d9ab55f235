// What happened in which order within one instant, as far as a run file tells. Internal to ResidencyHistory.
//
// Residencies stand in the file in the order in which they began; their ends carry a time only. Where residencies begin
// and others end in one instant, the bytes that the tier was asked for, point by point (RunSource::memory), say when
// how much ended: a rise is made of the next begins, a fall of ends.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gui/model/tier_changes.h"

namespace memwall::gui {

struct InstantChanges {
  std::span<const std::uint32_t> begins, ends;  // rows of residencies, ascending; a residency may be in both
};

// `requested`: before the instant, then after every turn in it. `at_peak`: whether a row stands when the tier holds
// most; where there is a choice, others end first. What the points do not tell comes last, begins before ends.
std::vector<TierChange> order_within(const ResidencyColumns& columns, const InstantChanges& changes,
                                     std::span<const Bytes> requested, const std::vector<bool>& at_peak);

// The same for all instants of a tier: changes[i] in the order of time, of each instant begins before ends, as they
// come in. Throws InputError, LoadCancelled.
void order_instants(const ResidencyColumns& columns, const RunSource& source, std::uint32_t tier,
                    std::vector<TierChange>& changes, const LoadProgress& progress);

}  // namespace memwall::gui
