// What links let pass, for bounds: of all paths, of those behind the first, and where copies pass through buffers.
// Internal to policies/cycle.
#pragma once

#include <vector>

#include "policies/cycle/cycle_links.h"
#include "policies/cycle/step_cycle.h"

namespace memwall {

// What passes the links, and bytes that have left the device, or come back to it, before they have passed.
struct LinkFlow {
  CycleLinks links;
  Bytes ahead = 0;
};

// One, or, where copies pass through buffers, both limits: what these hold may be ahead of the links behind them, and
// what lies between the device and the buffers. At most so many bytes pass as each of them says.
std::vector<LinkFlow> flows_of(const StepCycle& cycle, const CycleLinks& links);

// All paths but the first.
CycleLinks behind_first(const CycleLinks& links);

// Bytes that the path's tier holds at most: what is rounded up least fills it.
Bytes most_in(const StepCycle& cycle, const CyclePath& path);

}  // namespace memwall
