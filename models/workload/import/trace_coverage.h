// How much of an imported trace is known, whatever the format: the last lines of `memwall import --explain`.
#pragma once

#include <vector>

#include "models/workload/import/timed/decision.h"
#include "sim/trace/trace.h"

namespace memwall {

// Device ops with measured durations, kernels with a class, FLOPs, bytes and shape, device ops with uses, storages with
// a kind. What there is nothing of has no line.
std::vector<Decision> coverage_of(const Trace& trace);

}  // namespace memwall
