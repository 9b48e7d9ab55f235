// What the windows that bind (MovesBound) say about gaps: which are worth moving, and which fill a window without a
// pause of its link.
#pragma once

#include <cstdint>
#include <vector>

#include "policies/cycle/moves_bound.h"

namespace memwall {

// By gap: what covers a peak at which the device waits is made more of, as it has to be away anyway; what passes the
// link in such a window and does not is made less of. REQUIRES: `bound` is of the cycle.
std::vector<double> weights_by_windows(const StepCycle& cycle, const MovesBound& bound);

// By window, of the gaps that cover its peak as many as hold what is over the budget there: where copies out bind,
// those written first, so that the link always has something to carry; where copies back bind, those used last. In this
// order. Gaps of few bytes are left out. `budget`: bytes of device memory.
std::vector<std::uint32_t> gaps_filling_windows(const StepCycle& cycle, const MovesBound& bound, Bytes budget);

}  // namespace memwall
