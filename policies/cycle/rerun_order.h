// In which order candidates for re-runs are best taken, where what is not made again moves: guided by the bound of
// plans that move.
//
// While the device has to wait, the candidate comes next that costs least for what it takes off the waits of the
// windows that bind (policies/cycle/moves_bound.h). A storage that has much time to leave and to come back lies in none
// of them, however cheap it would be to make again.
#pragma once

#include <cstddef>
#include <vector>

#include "policies/cycle/moves_bound.h"
#include "policies/cycle/step_reruns.h"

namespace memwall {

struct RerunOrder {
  std::vector<RerunCandidate> candidates;  // all that were given: those that shorten a turn first, in their order
  std::size_t best = 0;                    // so many of the first ones make the bound on a turn least
  double seconds = 0;                      // that bound, of a turn
};

struct RerunOrderSettings {
  // Of the bytes that lack time in a window at first: so many are chosen before the bound is asked anew.
  double share_per_round = 1.0 / 32;
  // Smaller storages stay where they are, where a plan without them is possible.
  Bytes least_bytes = 0;
  std::size_t peaks = kPeaksOfBound;  // of the bounds that are asked
};

// `candidates`: as rerun_candidates gives them; any part of them can be made again together, too. `budget`: bytes of
// device memory. REQUIRES: share_per_round > 0; budget > 0.
RerunOrder order_by_bound(const StepProfile& profile, const CycledStep& step, const CycleLinks& links, Bytes budget,
                          const std::vector<RerunCandidate>& candidates, const RerunOrderSettings& settings);

}  // namespace memwall
