// Why did an op begin when it did? Concluded from the times of an execution, as no clock says it: of
// everything that the op had to wait for by the rules of docs/engine.md, what was there last. Internal to
// validate/report.
#pragma once

#include <vector>

#include "sim/machine/machine.h"
#include "sim/engine/simulation.h"
#include "sim/trace/trace.h"

namespace memwall {

// Fills in causes and reasons of `records`, whose times are set. A copy that was stamped while its engine still
// served an earlier one stood before the engine: its start is put to that copy's end.
// REQUIRES: one record per op, in order of the ops.
void conclude_causes(const Trace& trace, const Machine& machine, std::vector<OpRecord>& records);

}  // namespace memwall
