// What a run writes to drives, and what that does to them.
#pragma once

#include "cli/print/table.h"
#include "traces/run/analysis/summary.h"

namespace memwall {

// A row per tier whose drives are written; none where nothing is.
Table drive_table(const RunSummary& summary);

}  // namespace memwall
