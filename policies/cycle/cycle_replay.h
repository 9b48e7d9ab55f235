// How long a turn takes under a plan of moves, once turns repeat.
//
// Slots run one after the other; a slot waits for the copies back of what it touches, and for the copies out of what is
// dropped right before it. Copies of one path and direction follow each other in the order of the plan; paths share the
// links' rate evenly, up to their own. The plan's budget is not looked at: live_under() says what lives.
#pragma once

#include <vector>

#include "policies/cycle/cycle_links.h"
#include "policies/cycle/move_plan.h"

namespace memwall {

struct ReplayedCycle {
  Duration turn{};                // from turn to turn
  std::vector<Duration> waits;    // by slot, of the last turn
  std::vector<std::uint32_t> for_move;  // by slot: the move it waited for last; kNone: none
  static constexpr std::uint32_t kNone = 0xffffffff;
};

ReplayedCycle replay_cycle(const StepCycle& cycle, const CycleLinks& links, const MovePlan& plan);

}  // namespace memwall
