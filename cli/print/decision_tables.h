// What leaves the GPU's memory in a run and what brings it back, by module.
#pragma once

#include <vector>

#include "cli/print/table.h"
#include "traces/run/analysis/summary.h"

namespace memwall {

// Modules that differ in numbers alone as one row; and each by itself, a detail. Without rows where nothing leaves.
std::vector<Table> decision_tables(const RunSummary& summary);

}  // namespace memwall
