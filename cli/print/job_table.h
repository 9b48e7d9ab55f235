// What all ranks of a job do and take together.
#pragma once

#include "cli/print/table.h"
#include "traces/run/analysis/summary.h"

namespace memwall {

// Without rows where the run has no job totals.
Table job_table(const RunSummary& summary);

}  // namespace memwall
