// A profile holds several steps, a complete step is one: how often it stands in the profile, and its rounds in a row.
#pragma once

#include <cstdint>

#include "sim/trace/trace.h"

namespace memwall {

// As many as the profile has steps; of a window whose steps nobody marked, as often as the complete step's operators
// occur in it; 1 where the complete step is several itself. Throws UsageError where so many rounds are far more than
// the profile.
std::uint32_t rounds_of(const Trace& measured, const Trace& complete);

// The complete step `times` times. What a round leaves behind and none takes over ends with it. REQUIRES: times >= 1.
Trace rounds(const Trace& complete, std::uint32_t times);

}  // namespace memwall
