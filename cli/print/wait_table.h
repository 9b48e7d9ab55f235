// The table of waits: which lane stood still, for what, how long.
#pragma once

#include "cli/print/table.h"
#include "traces/run/analysis/summary.h"

namespace memwall {

// The longest first, at most kMostWaits of them; JSON has all. No time in it is longer than the run.
inline constexpr std::size_t kMostWaits = 12;
Table wait_table(const RunSummary& summary);

}  // namespace memwall
