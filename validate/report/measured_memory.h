// Memory of an execution: allocations and frees in the order in which the host made them, replayed through
// the simulator's allocators. Internal to validate/report.
#pragma once

#include <vector>

#include "sim/machine/machine.h"
#include "sim/engine/observer.h"
#include "sim/engine/simulation.h"
#include "sim/trace/trace.h"

namespace memwall {

struct MemoryStep {
  Time time{};
  OpId op = kNoOp;  // an alloc or a free
};

// By host start, program order within an instant.
std::vector<MemoryStep> memory_steps(const Trace& trace, const std::vector<OpRecord>& records);

// Places what exists before the first op, then does the steps; `observer` sees every change. What does not fit
// is placed all the same: it did fit, and the tiers' `missing` is 0. Throws InputError where an order of
// several threads frees what is not there.
std::vector<TierResult> replay_memory(const Trace& trace, const Machine& machine, const std::vector<MemoryStep>& steps,
                                      Observer* observer);

// Per tier: the most that is allocated and reserved when the steps are done again and again, everything being freed
// in between and the caches kept, as an executor does it pass by pass. (A block is handed out whole where splitting
// it is not worth while, so that the cache makes a difference to both.)
std::vector<Usage> warm_peaks(const Trace& trace, const Machine& machine, const std::vector<MemoryStep>& steps);

}  // namespace memwall
