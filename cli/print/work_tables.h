// What a run's time is made of, by name, and what policies change in it.
#pragma once

#include "cli/print/table.h"
#include "sim/trace/trace.h"
#include "traces/run/analysis/summary.h"

namespace memwall {

Table operator_table(const RunSummary& summary);
Table kernel_table(const RunSummary& summary);
// The host's part of the critical path; a detail where that is small.
Table host_table(const RunSummary& summary);

// What policies change in a step's kernels, by class of operator: kernels, FLOPs, bytes that they read and write and
// time one by one, before the policies and after. Classes without kernels are left out; all together stand last.
Table class_effect_table(const Trace& before, const Trace& after);

}  // namespace memwall
