// What nvidia-smi would show of a run's GPU, and what it is made of.
#pragma once

#include "cli/print/table.h"
#include "traces/run/analysis/summary.h"

namespace memwall {

// A row per part; none for a run that does not tell what memory holds.
Table device_memory_table(const RunSummary& summary);

}  // namespace memwall
