// The summary of a run as tables, each with what its figures include.
#pragma once

#include <vector>

#include "cli/print/missing_memory.h"
#include "cli/print/table.h"
#include "traces/run/analysis/summary.h"

namespace memwall {

std::vector<Table> summary_tables(const RunSummary& summary);

}  // namespace memwall
