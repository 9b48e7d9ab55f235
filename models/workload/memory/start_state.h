// The state of the allocator before the first recorded event: which segments there were, and which blocks lived.
//
// A recording that begins empty shows it (every free has its alloc, every alloc lies in a segment_alloc that was seen),
// and of its final segments only that they were seen is looked at. For every other, the events are walked backward from
// the final segments.
// The sizes of blocks freed inside the window are then found as docs/memory.md says.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/workload/memory/recording.h"
#include "sim/memory/pytorch_allocator.h"

namespace memwall {

struct StartState {
  bool empty = true;                   // the recording begins before the first allocation
  std::vector<SegmentState> segments;  // for PytorchAllocator::restore
  // Stack of each block that lives at the start, where the final segments know it: (address, stack), by address.
  std::vector<std::pair<Address, StackId>> stacks;
  // The file contradicts itself: event, what is wrong. The state then is what could be found.
  std::vector<std::string> contradictions;
};

// `settings`: those of the recording. `look_ahead`: find the remainders of large blocks in the allocations to come; off
// only to see what that is worth.
StartState find_start_state(const DeviceRecording& device, const AllocatorSettings& settings, bool look_ahead = true);

}  // namespace memwall
