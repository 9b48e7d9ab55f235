// Which events make up a training step. Internal to the memory study.
#pragma once

#include <string>
#include <vector>

#include "models/workload/memory/allocations.h"
#include "models/workload/memory/phase_intervals.h"

namespace memwall {

// By annotation ("ProfilerStep#3", else a record_function called step or iteration), else by phases: a step ends with
// the optimizer after a backward pass. Only whole steps. A note says how, or why there is none.
std::vector<RecordedStep> find_steps(const MemoryRecording& recording, const DeviceRecording& device,
                                     const PhaseIntervals& runs, std::vector<std::string>& notes);

}  // namespace memwall
