// The stages of a divided model: where the time of each goes, and what its memory holds when most of it is in use.
#pragma once

#include "cli/print/table.h"
#include "traces/run/analysis/summary.h"

namespace memwall {

// One row per rank that has a program of its own; without rows where the trace says nothing of stages.
Table stage_table(const RunSummary& summary);
Table stage_memory_table(const RunSummary& summary);

}  // namespace memwall
