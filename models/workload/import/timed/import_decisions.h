// What the import of a Kineto capture concluded, each with its coverage, for `memwall import --explain`.
// Internal to the importers of captures with a profiler's events.
#pragma once

#include <vector>

#include "models/workload/import/timed/decision.h"
#include "models/workload/import/execution_trace/execution_trace_join.h"
#include "models/workload/import/timed/timed_import.h"
#include "models/workload/import/timed/recorded_shapes.h"

namespace memwall {

// REQUIRES: `imported` is what import_timed_capture made of `capture`.
std::vector<Decision> import_decisions(const TimedCapture& capture, const ImportedTrace& imported);
std::vector<Decision> shape_decisions(const RecordedShapes& shapes);
// Of the join with an ExecutionTrace.
std::vector<Decision> join_decisions(const JoinReport& report);

}  // namespace memwall
