// The GPU memory that most is asked of: of a run of several programs the fullest rank's, of one program its own. A
// sweep's `peak` is this one, since a job fits where its fullest rank does.
#pragma once

#include <optional>

#include "traces/run/run.h"

namespace memwall {

struct GpuMemoryPeaks {
  Bytes allocated = 0, reserved = 0, missing = 0;  // each the largest of all GPUs: they may be of different ranks
};

// Nothing for a run that does not tell what memory holds, and for a machine without GPU memory.
std::optional<GpuMemoryPeaks> gpu_memory_peaks(const Run& run);

}  // namespace memwall
