// Writes a plan of recomputation into a trace: early frees in forward, re-run ops with new storages
// before the backward ops that need them, and backward reading those.
#pragma once

#include "policies/trace/dataflow.h"
#include "policies/recompute/recompute_plan.h"
#include "sim/machine/machine.h"
#include "sim/trace/trace.h"

namespace memwall {

// The re-run repeats the unit's host program on the backward thread: its kernels, allocs, frees and
// host work with their gaps and costs, as torch.utils.checkpoint does. A re-run kernel keeps duration
// and origin, has Phase::recompute and names its original in Op::source. It does not have Op::added:
// it stands in its original's stream, where nothing runs beside it that did not before.
// REQUIRES: `plan` was made for `trace` and `flow`.
Trace with_recompute(const Trace& trace, const Dataflow& flow, const RecomputePlan& plan, const Machine& machine);

}  // namespace memwall
