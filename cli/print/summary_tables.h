// The summary of a run as tables, each with what its figures include.
#pragma once

#include <vector>

#include "cli/print/table.h"
#include "traces/run/analysis/summary.h"

namespace memwall {

std::vector<Table> summary_tables(const RunSummary& summary);

// One sentence per tier that was overdrawn, "" if the run fits.
std::string missing_sentence(const RunSummary& summary);

}  // namespace memwall
