// What the import of a timed capture concluded, each with its coverage, for `memwall import --explain`.
// Internal to the importers of timed captures.
#pragma once

#include <vector>

#include "models/workload/import/timed/decision.h"
#include "models/workload/import/timed/recorded_shapes.h"
#include "models/workload/import/timed/timed_import.h"

namespace memwall {

// REQUIRES: `imported` is what import_timed_capture made of `capture`.
std::vector<Decision> import_decisions(const TimedCapture& capture, const ImportedTrace& imported);
std::vector<Decision> shape_decisions(const RecordedShapes& shapes);

}  // namespace memwall
