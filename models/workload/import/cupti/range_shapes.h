// Shapes of kernels by the sizes that ranges of emit_nvtx(record_shapes=True) list, NVTX's or roctx's.
// Internal to the importers of records of a runtime.
#pragma once

#include <vector>

#include "models/workload/import/timed/decision.h"
#include "models/workload/import/timed/timed_import.h"

namespace memwall {

// Adds shapes to the kernels, and FLOPs to products whose data type the kernel's name tells. Ranges say no types:
// bytes stay unknown. Returns what was concluded.
std::vector<Decision> add_range_shapes(const TimedCapture& capture, ImportedTrace& imported);

}  // namespace memwall
