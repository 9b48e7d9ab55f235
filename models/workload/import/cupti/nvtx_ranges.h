// NVTX ranges beside CUPTI records as operators, modules, steps and phases of a capture.
// Internal to the importers of CUPTI records.
#pragma once

#include <functional>
#include <string>

#include "models/workload/import/cupti/cupti_records.h"
#include "models/workload/import/timed/event_order.h"

namespace memwall {

struct NvtxRangeCounts {
  std::uint64_t ranges = 0, operators = 0, modules = 0, steps = 0, phases = 0;
  std::uint64_t instants = 0, open = 0, across_threads = 0;  // left out
};

// Adds ranges to `capture`, times in nanoseconds. `thread` gives a thread's index in the capture. `step_range`: see
// convert_cupti_records.
NvtxRangeCounts add_ranges(const CuptiRecords& records, const std::string& step_range,
                           const std::function<std::uint16_t(std::uint32_t)>& thread, TimedCapture& capture,
                           CaptureTimeRange& span);

}  // namespace memwall
