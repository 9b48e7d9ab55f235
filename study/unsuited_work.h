// What of a step the machine's GPU does slowly, or not at all: number formats and kernels that are made for other GPUs.
#pragma once

#include "sim/machine/machine.h"
#include "sim/trace/trace.h"

namespace memwall {

// Adds a note of each to a step whose times are modelled for the machine, or transferred to it; by what the machine's
// file says of its GPU (peak rates, compute capability, kernels of attention).
void note_unsuited_work(Trace& trace, const Machine& machine);

}  // namespace memwall
