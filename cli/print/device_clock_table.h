// The table that sets the peaks of tiers on two clocks beside each other.
#pragma once

#include "cli/print/table.h"
#include "traces/run/analysis/summary.h"

namespace memwall {

// Per tier that holds anything: what the allocator's peak was requested for, on the host's clock, and the most bytes
// that held data on the device's (traces/run/analysis/device_occupancy.h). Without rows where the run does not tell.
Table device_clock_table(const RunSummary& summary);

}  // namespace memwall
