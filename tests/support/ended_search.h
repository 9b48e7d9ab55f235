// What `plan` takes of plans that only move in the end: that of the search, or the fastest of whole storages.
#pragma once

#include <utility>

#include "policies/cycle/move_search.h"
#include "policies/cycle/whole_moves.h"

namespace memwall {

inline FoundMoves ended_search(const StepCycle& cycle, const CycleLinks& links, Bytes budget, const MovesBound& bound) {
  FoundMoves found = find_moves(cycle, links, budget, bound);
  auto whole = find_whole_moves(cycle, links, budget);
  if (!whole || !whole->best || (found.fits && found.seconds <= whole->best->seconds)) return found;
  found.fits = true;
  found.seconds = whole->best->seconds;
  found.plan = std::move(whole->best->plan);
  return found;
}

}  // namespace memwall
