// The tables of runs that hold several ranks of a job.
#pragma once

#include "cli/print/table.h"
#include "traces/run/analysis/summary.h"

namespace memwall {

// Per rank: its step, how long it waits for the others, how often the others wait for it. Without rows where the run
// holds one rank.
Table rank_table(const RunSummary& summary);

}  // namespace memwall
