// What a run's time is made of, by name.
#pragma once

#include "cli/print/table.h"
#include "traces/run/analysis/summary.h"

namespace memwall {

Table operator_table(const RunSummary& summary);
Table kernel_table(const RunSummary& summary);
// The host's part of the critical path; a detail where that is small.
Table host_table(const RunSummary& summary);

}  // namespace memwall
