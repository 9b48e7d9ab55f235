// What the import of a Kineto capture concluded, each with its coverage, for `memwall import --explain`.
// Internal to the importers of captures with a profiler's events.
#pragma once

#include <vector>

#include "models/workload/import/decision.h"
#include "models/workload/import/execution_trace_join.h"
#include "models/workload/import/kineto_import.h"
#include "models/workload/import/kineto_shapes.h"

namespace memwall {

// REQUIRES: `imported` is what import_kineto made of `capture`.
std::vector<Decision> kineto_decisions(const KinetoCapture& capture, const ImportedTrace& imported);
std::vector<Decision> shape_decisions(const RecordedShapes& shapes);
// Of the join with an ExecutionTrace.
std::vector<Decision> join_decisions(const JoinReport& report);

}  // namespace memwall
