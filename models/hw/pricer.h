// Prices what a rewriter adds or changes: the implementation of sim/pricer.h
// over a machine file.
//
//   copy        latency + bytes / (bandwidth * efficiency(bytes))
//   collective  ring: base + k (N-1) step + wire bytes / (bus bandwidth * efficiency(bytes)),
//               k = 2 and twice the bytes for an all-reduce, else 1
//               (nccl-tests doc/PERFORMANCE.md for the bytes, NCCL src/graph/tuning.cc for the steps)
//   host work   DRAM bytes / what the CPU optimizer sustains
#pragma once

#include <memory>

#include "sim/machine.h"
#include "sim/pricer.h"

namespace memwall {

// Keeps a copy of `machine`.
std::unique_ptr<Pricer> make_pricer(const Machine& machine);

}  // namespace memwall
