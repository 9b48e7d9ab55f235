// Routes between tiers: the links that they take, and what bounds them.
#pragma once

#include <vector>

#include "cli/print/table.h"
#include "traces/run/analysis/summary.h"

namespace memwall {

// Of a run: those that carried anything.
Table run_route_table(const RunSummary& summary);
// Of a machine: all; and its fabrics, which bound collectives.
std::vector<Table> machine_route_tables(const Machine& machine);

}  // namespace memwall
