// Makes the HBM traffic of measured kernels possible.
//
// An importer counts what an operator's kernels read and write from the sizes of their tensors. Caches
// serve a part of that, so the sum can exceed what HBM moves in the measured duration. On the trace's
// own machine the duration is a fact: traffic is capped at duration x bandwidth. Not that of memsets: how many bytes
// they write is recorded, and what HBM moves of them the engine limits by itself.
#pragma once

#include "sim/machine/machine.h"
#include "sim/trace/trace.h"

namespace memwall {

// `machine` is the one the trace was measured on. Adds a note with the number of kernels capped.
Trace with_possible_traffic(Trace trace, const Machine& machine);

}  // namespace memwall
