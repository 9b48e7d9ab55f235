// Measured times onto a complete step: a profile says when what ran, a capture on fake tensors or a generated step
// which storage is used and when it lives. Together they are a step that any policy takes.
//
// The result is the measured host program: its lines in their order, with their times, streams, threads, waits and
// edges. Each line that has a partner in the complete step (line_pairs.h) takes from it what is computed: operator,
// module, phase, shape, FLOPs, bytes, and the storages that it reads and writes. Allocations and frees are the complete
// step's; they lie between the lines that they lie between there, and share with them the host time that was measured
// there, as they do in the complete step. What one call of an operator took and gave back (workspaces.h) is the
// profile's. Where several measured lines are one of the complete step, each reads what that reads, writes what it
// writes, and reads what the one before wrote. Where one is several, they share its time as their own durations say.
// What was measured alone stays, without storages. What only the complete step has stays with the durations that it has
// there. Times are not scaled: where more than 30 % of the pairs differ in shape, the report says by how much.
#pragma once

#include "models/workload/graft/graft_report.h"
#include "models/workload/operator_calls.h"
#include "sim/trace/trace.h"

namespace memwall {

struct GraftedTrace {
  Trace trace;
  GraftReport report;
};

// `complete`: with durations, measured or modelled for the machine that `measured` is of. Of several measured steps, it
// is repeated as often where it is one; of a window whose steps nobody marked, as often as its operators occur.
// `calls`: of the measured program. Throws UsageError where a program holds several ranks,
// where `complete` lacks dataflow or allocations, or has another number of steps that is not one.
GraftedTrace graft(const Trace& measured, const Trace& complete, const OperatorCalls& calls = {});

}  // namespace memwall
