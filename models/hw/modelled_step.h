// Prices a step that was measured nowhere (captured with fake tensors, or generated) for a machine:
// durations, the host's calls and the constants of the replay.
//
//   kernels       by models/hw/kernel_cost.h; of unknown work: the shortest of their class
//   copies        by the price of their route
//   collectives   over the ranks of their group, or Trace::ranks where it is unknown, in a ring: the message from what
//                 one rank sends of it
//   host calls    launch (each of an op's kernels), copy, event and allocator calls as the machine's file has them
//   framework     before an op: its framework calls, each at the file's cost of forward, backward or optimizer;
//                 compiled code: its cost per kernel
//   CUDA graphs   one call; its nodes cost the host nothing
//   constants     launch latency and gap between queued kernels, as in the file
//
// What the program does in Python besides calling operators is in no machine file: it costs nothing here.
#pragma once

#include "sim/machine/machine.h"
#include "sim/trace/trace.h"

namespace memwall {

// Does the trace hold a program, but no times at all? True of captures with fake tensors.
bool measured_nowhere(const Trace& trace);

// REQUIRES: measured_nowhere(trace). The result knows timing, and its machine is `machine`.
Trace modelled_on(Trace trace, const Machine& machine);

// Is there device work that has no duration of its own, and was not added by a policy?
bool lacks_durations(const Trace& trace);

// The ops among measured ones that have no duration of their own, priced as above; a note counts them.
Trace with_missing_durations(Trace trace, const Machine& machine);

}  // namespace memwall
