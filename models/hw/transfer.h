// A trace that was measured on one machine, as it would be on another.
//
// Every measured duration becomes measured x predicted there / predicted here, with the same model
// on both sides (kernel_cost.h, routes, fabrics), so what the model misses cancels. A kernel whose
// FLOPs and bytes are unknown scales with what kernels of its class are bound by: matrix classes by
// the peak rate that they reach, all others by HBM bandwidth. Launch latencies and stream gaps move
// by the difference of the two machines' own; host times stay: the host program is the same, and
// nothing is known of how fast the other host runs it. All changed ops have Origin::transferred.
#pragma once

#include "sim/machine.h"
#include "sim/trace.h"

namespace memwall {

// Sets Trace::machine to `there`, and notes what was scaled. Places of copies that `there` lacks
// are left as they are: the simulation refuses them with a sentence.
Trace transferred(Trace trace, const Machine& here, const Machine& there);

}  // namespace memwall
