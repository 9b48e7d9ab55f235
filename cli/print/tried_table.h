// What was tried on a step that does not fit, as a table.
#pragma once

#include "cli/print/table.h"
#include "traces/run/analysis/summary.h"

namespace memwall {

// Best first, as in RunSummary::tried; no rows where nothing was tried.
Table tried_table(const RunSummary& summary);

}  // namespace memwall
