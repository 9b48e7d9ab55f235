// Carries a trace from the machine it was measured on to another one: a first,
// plain form. Each duration becomes measured x predicted there / predicted here.
//
//   kernels with known FLOPs or bytes   by the roofline of models/hw/kernel_cost.h
//   kernels with neither                by the ratio of HBM bandwidths: taken as memory-bound, and counted in a note
//   copies                              by the price of their route
//   collectives                         by the ratio of bus bandwidths
//   modelled ops                        priced anew
//   host time                           unchanged: nothing is known about the other host's cores
//
// It has no interval and no check against a second capture yet; the note says so.
#pragma once

#include "sim/machine.h"
#include "sim/trace.h"

namespace memwall {

// Two machines of one name may differ by settings (--set); what they have in common changes nothing.
// `from` may be null: the trace was measured nowhere (all modelled), or on an unknown machine, and
// then only modelled ops change. Changed ops of origin measured become transferred.
Trace transferred(Trace trace, const Machine* from, const Machine& to);

}  // namespace memwall
