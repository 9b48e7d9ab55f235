// Charts of a memory snapshot: what `memwall render` draws of one.
#pragma once

#include <optional>
#include <string>

#include "models/workload/memory/allocations.h"
#include "models/workload/memory/recording_replay.h"
#include "traces/figure/blocks_figure.h"
#include "traces/figure/memory_figure.h"
#include "traces/figure/segment_map_figure.h"

namespace memwall {

// One device of a snapshot, replayed as it was.
struct RecordedMemory {
  std::string name;  // of the file
  const MemoryRecording& recording;
  const DeviceRecording& device;
  StartState start;
  AllocationTable table;
  RecordingReplay replay;
};

// REQUIRES: `device` is one of `recording`'s; both outlive the result.
RecordedMemory replay_for_charts(const std::string& name, const MemoryRecording& recording,
                                 const DeviceRecording& device);

// Requested bytes by kind, then rounding, then what streams may still use; reserved and allocated as outlines.
// `capacity` 0 = unknown. Throws UsageError for an axis of time where the recording has no usable times.
MemoryChart memory_chart(const RecordedMemory& memory, InstantUnit axis, Bytes capacity);

// Every allocation over its life, in requested bytes.
BlocksChart blocks_chart(const RecordedMemory& memory, InstantUnit axis, Bytes capacity);

// After `event`; none = before the first.
SegmentMapChart segment_map_chart(const RecordedMemory& memory, std::optional<std::uint32_t> event);

}  // namespace memwall
