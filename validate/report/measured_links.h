// What flowed over the links in an execution: every op its bytes, evenly over the time that it took. Internal
// to validate/report.
#pragma once

#include <vector>

#include "sim/machine/machine.h"
#include "sim/engine/observer.h"
#include "sim/engine/simulation.h"
#include "sim/trace/trace.h"

namespace memwall {

// `observer` is told the rates, in order of time. Ops and links are those that the engine counts: copies and
// storage I/O along their routes, kernels and memsets on the HBM, host work on the DRAM.
std::vector<LinkResult> measured_links(const Trace& trace, const Machine& machine, const std::vector<OpRecord>& records,
                                       Observer* observer);

}  // namespace memwall
