// The shortest turn of plans that move whole storages, by branch and bound: for cycles in which few gaps cover slots
// that are over the budget.
//
// Decided is, one after the other, for each gap and slot over the budget whether it is away there, and then in which
// order copies follow each other. What is decided gives each copy a release (its content is written; its memory is
// taken again) and a deadline (the first slot without it; its next touch), and these a lower bound on the turn
// (copies_of_turn.h): the least of those that are open is one of all plans, whenever the search ends. Where it ends by
// itself, that is what the plan takes which it gives.
//
// What a plan is: every turn alike; a storage is away as a whole, from the start of one slot to that of another; each
// direction has one copy at a time, in the order of the plan, in one piece (cycle_replay.h; policies/plan/plan_writer.h
// carries plans out so). It does not speak of plans that move parts of storages (pages), nor of several paths: with
// those there is no answer. A copy that passes through a buffer in the host's memory leaves the device before it is
// where it goes: with those there is no bound of any plan. find_whole_moves() is of plans that drop before they fetch
// in a slot, as cycle_replay.h has them; the bound is of those that do not, too. Room in the slower tier is not looked
// at for the bound; a plan that exceeds it is not given.
#pragma once

#include <cstdint>
#include <optional>

#include "policies/cycle/cycle_links.h"
#include "policies/cycle/move_plan.h"

namespace memwall {

struct WholeMovesLimits {
  std::uint32_t gaps = 24;         // that cover slots over the budget, and need a copy back
  std::uint32_t slots = 64;        // over the budget; at most 64
  std::uint64_t work = 1'000'000;  // gaps and constraints looked at: about 10 ms
};

struct WholeMovesPlan {
  MovePlan plan;
  double seconds = 0;  // of a turn, replayed
};

struct WholeMoves {
  double bound_seconds = 0;  // no such plan has a shorter turn
  bool is_complete = false;  // the search has ended by itself
  std::optional<WholeMovesPlan> best;
  std::uint64_t work = 0;
};

// Of plans that keep to the budget with all blocks of the cycle, which run for all of the slots' time. Nothing where
// there is more than the limits allow, another path, or nothing to move.
std::optional<WholeMoves> find_whole_moves(const StepCycle& cycle, const CycleLinks& links, Bytes budget,
                                           const WholeMovesLimits& limits = {});

// Of a bound alone.
constexpr WholeMovesLimits kLimitsOfBound = {.gaps = 40, .slots = 32};

// Seconds of a turn that no such plan is below, whoever makes it: with what needed_bytes() counts, and slots' work
// alone, as moves_bound(). Where there is more than the limits allow, smaller gaps count as away for nothing, and slots
// between the highest are not looked at, as long as half of what is over the budget is left. 0 where there is no
// answer.
double whole_moves_bound_seconds(const StepCycle& cycle, const CycleLinks& links, Bytes budget,
                                 const WholeMovesLimits& limits = kLimitsOfBound);

}  // namespace memwall
