// NVTX ranges of a .mwi file as operators, modules, steps and phases of a capture.
// Internal to the importer of these files.
#pragma once

#include <functional>
#include <string>

#include "models/workload/import/inject_records.h"
#include "models/workload/import/kineto_order.h"

namespace memwall {

struct InjectRangeCounts {
  std::uint64_t ranges = 0, operators = 0, modules = 0, steps = 0, phases = 0;
  std::uint64_t instants = 0, open = 0, across_threads = 0;  // left out
};

// Adds ranges to `capture`, times in nanoseconds. `thread` gives a thread's index in the capture. `step_range`: see
// InjectImportOptions.
InjectRangeCounts add_ranges(const InjectRecords& records, const std::string& step_range,
                             const std::function<std::uint16_t(std::uint32_t)>& thread, KinetoCapture& capture,
                             CapturedSpan& span);

}  // namespace memwall
