// The fastest plan of whole-storage moves of a small cycle, by trying all. Shares no code with policies/cycle but the
// description of cycles and plans.
//
// Enumerates for each gap whether and in which slots it is away, and for both directions in which order copies are issued.
// Left out is only what cannot be faster than what stays, as starting later, waiting longer and moving more never makes
// a turn shorter: a drop where the storage still has room in the slot, a copy that could be issued a slot earlier in the
// same order (of both, the first of a slot has to be bound to it), and what is worse than the best so far even if every
// copy had a link of its own.
#pragma once

#include <optional>

#include "policies/cycle/cycle_links.h"
#include "policies/cycle/move_plan.h"

namespace memwall {

struct BestMoves {
  MovePlan plan;
  double seconds = 0;  // of a turn, once turns repeat
  long replays = 0;    // that it took
  bool given_up = false;  // more than `most_replays`
};

// Nothing where no plan keeps to the budget. REQUIRES: one path without latency.
std::optional<BestMoves> best_moves(const StepCycle& cycle, const CycleLinks& links, Bytes budget, long most_replays);

}  // namespace memwall
