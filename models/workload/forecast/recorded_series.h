// The memory of a snapshot's recording over its events.
#pragma once

#include <vector>

#include "models/workload/memory/recording.h"

namespace memwall {

// Requested bytes that live after each event: the running sum of allocations and frees, begun so that it ends with
// what the file's segments hold at the end (with 0, or what keeps it from falling below 0, where it has no segments).
std::vector<double> live_bytes_of(const DeviceRecording& device);

}  // namespace memwall
