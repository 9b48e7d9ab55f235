// Prices what a rewriter adds or changes: the implementation of sim/machine/pricer.h
// over a machine file.
//
//   copy        latency + bytes / (bandwidth * efficiency(bytes))
//   collective  models/hw/collective_cost.h
//   host work   DRAM bytes / what the CPU optimizer sustains; in another tier's memory no faster than the way there,
//               or, where that tier has compute, max(FLOPs / compute, bytes / its bandwidth)
#pragma once

#include <memory>

#include "sim/machine/machine.h"
#include "sim/machine/pricer.h"

namespace memwall {

// Keeps a copy of `machine`.
std::unique_ptr<Pricer> make_pricer(const Machine& machine);

}  // namespace memwall
