// The best of many plans of moves: a portfolio of settings, then repair of the waits that remain.
#pragma once

#include "policies/cycle/move_schedule.h"
#include "policies/cycle/moves_bound.h"

namespace memwall {

// A plan that was tried and fits.
struct ReplayedMoves {
  double seconds = 0;  // of a turn
  MovePlan plan;
};

struct FoundMoves {
  MovePlan plan;
  std::vector<ReplayedMoves> others{};  // nearly as good, the best first: SearchEffort::others
  bool fits = false;        // !fits: no plan keeps to the budget; `plan` is empty
  double seconds = 0;       // of a turn, replayed
  std::uint32_t over = 0;   // !fits: a slot that stays over the budget
  std::uint32_t tried = 0;  // plans
  std::uint64_t work = 0;   // MoveSchedule::work of all of them
};

struct SearchEffort {
  std::uint32_t settings = 16;  // of the portfolio, at most 16
  std::uint32_t repairs = 300;  // tries behind it, at most; fewer in a cycle of many slots
  Bytes finest = 16384;         // MoveSettings::finest
  bool goes_on = false;         // MoveSettings::goes_on
  double worth_seconds = 1e18;  // a plan whose turn takes longer is of no use: it need not be found
  std::size_t others = 0;       // FoundMoves::others, at most
};

// `bound`: of the same cycle and budget; the search stops where it is reached. Same input, same plan.
FoundMoves find_moves(const StepCycle& cycle, const CycleLinks& links, Bytes budget, const MovesBound& bound,
                      const SearchEffort& effort = {});

}  // namespace memwall
