// The end of a replay against the segments of the file.
#pragma once

#include <vector>

#include "models/workload/memory/recording_replay.h"

namespace memwall {

// Fills the final counts of `check`: segments equal in address, size, stream and pool, blocks equal in address, size
// and state.
void check_end(const DeviceRecording& device, const std::vector<SegmentState>& segments, ReplayCheck& check);

}  // namespace memwall
