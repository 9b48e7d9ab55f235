// Lifetimes that nobody recorded: a storage is allocated before the first op that uses it and freed behind the last.
// A lower bound: what held it longer is not known. Storages of before the step, and those that are said to stay, are
// not freed.
#pragma once

#include <cstddef>
#include <vector>

#include "sim/trace/trace.h"

namespace memwall {

struct DerivedLifetimes {
  std::size_t made = 0, freed = 0;
  std::size_t kept = 0;    // made and not freed: they were said to outlive the step
  std::size_t unused = 0;  // of no op, hence without a life
  std::vector<OpId> places;  // by op before: its number now; and behind the last, the number of ops
};

// Adds alloc and free ops, marked as inferred (sim/trace/derived_lives.h), to a trace that has none, around the whole
// of a CUDA graph; numbers of ops in hand-overs, steps and sources follow. `alive_until`: by storage, an op before
// which it is not freed; kNoOp: never freed; 0: nothing said. REQUIRES: the trace has uses; alive_until is empty or has
// one entry per storage. Sets Knowledge::allocations.
DerivedLifetimes add_derived_lifetimes(Trace& trace, const std::vector<OpId>& alive_until);

}  // namespace memwall
