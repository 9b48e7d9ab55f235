// The bound on a turn's time as a linear program (by Clp): bytes that are away, and flows over the links, between chosen
// slots. An oracle for the closed form of policies/cycle, of which it knows only the description of cycles.
//
// Between the ends and starts of the chosen slots flows are counted in bulk and the device may wait; in these slots what
// lives must keep to the budget. Content may leave from the stretch on in which it is written, and has to be back by the
// end of that in which it is used. What is away in a slot has left before it, and all of it comes back behind it.
// Storages alike at the chosen slots are one. Fewer slots make it weaker, never wrong; with all slots, and those at
// which windows of the closed form begin and end among them, it is at least the closed form.
#pragma once

#include "policies/cycle/cycle_links.h"
#include "policies/cycle/step_cycle.h"
#include "policies/solver/linear_program.h"

namespace memwall {

struct FlowBound {
  SolverStatus status = SolverStatus::unknown;
  double seconds = 0;  // no turn is shorter
  double per_byte = 0;  // its derivative by the budget, from the program's duals; <= 0
  std::size_t columns = 0, rows = 0;
};

// `slots`: at which it looks, ascending and distinct; at least one. REQUIRES: LinearProgram::is_available().
FlowBound flow_bound(const StepCycle& cycle, const CycleLinks& links, Bytes budget,
                     const std::vector<std::uint32_t>& slots, const SolverLimits& limits = {});

// Of each of so many parts of the turn the slot in which most lives.
std::vector<std::uint32_t> highest_slots(const StepCycle& cycle, std::size_t parts);

}  // namespace memwall
