// An execution, and what memwall says of the same schedule, as two runs: `compare`, `render` and the viewer
// show them side by side.
#pragma once

#include "sim/machine/machine.h"
#include "sim/trace/trace.h"
#include "traces/run/run.h"
#include "validate/replay/execution.h"

namespace memwall {

// The schedule with the times that memwall may use: each kernel and host work its stand-alone time from the
// execution, each copy and storage op what `machine` says, each call what `machine` says it costs. Everything
// contends with everything (Op::added): stand-alone times contain no overlap. Throws InputError where the
// execution has not as many ops as the schedule, UsageError where `machine` lacks a place or a route.
// REQUIRES: execution is of this schedule.
Trace repriced(const Trace& schedule, const Execution& execution, const Machine& machine);

// Simulates the repriced schedule, the allocator warm as in the execution: its segments are there since the
// passes before, so that an allocation costs a hit in the cache and what is reserved is what a cache that the
// same step has filled before holds at most. Throws what `repriced` throws.
Run simulated_run(const Trace& schedule, const Execution& execution, const Machine& machine);

// What was measured, in the same form. Why an op began when it did is concluded from the times: the last of
// launch, predecessor, awaited event and copy engine to have ended. Durations are those observed, memory is
// the measured order of allocations in the simulator's allocators, the peaks are the execution's own.
// Throws InputError naming the op where times contradict each other (an end before its start).
Run measured_run(const Trace& schedule, const Execution& execution, const Machine& machine);

}  // namespace memwall
