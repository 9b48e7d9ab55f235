// A pager's decisions as ordinary ops: what it moved while the trace was simulated becomes allocations, copies,
// events and frees that hardware can execute in the same order.
//
// An eviction for an op becomes, just before that op: a copy to new page-locked host memory on the stream "pager out",
// behind the last users of the storage; then the host waits for the copies and frees the device memory. A fetch
// becomes: device memory anew, a copy into it on the stream "pager in", and waits of every stream that uses it later.
// The copy also waits for the last users of what was freed into the same pool before, since it may get their memory;
// the simulator's pager knows no such wait, so that the result may be slower than the paged run. What moves before
// anybody has written it has no content: it changes its place without a copy, where the simulator's pager copies.
#pragma once

#include <vector>

#include "sim/machine/machine.h"
#include "sim/engine/simulation.h"
#include "sim/trace/trace.h"

namespace memwall {

// `moves`: SimulationResult::moves of `trace` on `machine` with a pager on the host's clock. The result is sound and
// needs no pager. Throws UsageError: a tier besides hbm and host, or moves that no pager on the host's clock makes in
// the order of the trace (a first touch that makes room, a storage moved where it is not): these are not implemented.
// REQUIRES: check(trace) is empty.
Trace with_recorded_moves(const Trace& trace, const Machine& machine, const std::vector<MoveRecord>& moves);

}  // namespace memwall
