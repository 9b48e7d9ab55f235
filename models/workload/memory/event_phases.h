// The phase of each event of a recording, from its frames, from what surrounds it and from PyTorch's own annotations
// of the optimizer. Internal to the memory study.
#pragma once

#include <string>
#include <vector>

#include "models/workload/memory/stack_phase.h"

namespace memwall {

struct EventPhases {
  std::vector<Phase> phases;            // by event
  std::vector<std::uint8_t> dropping;   // by event: gradients are dropped or set to zero (zero_grad)
  std::vector<std::uint8_t> replacing;  // by event: the block's place is taken by another (`x.data = y`)
  std::vector<std::string> notes;
};

// `facts`: of read_stacks.
EventPhases find_event_phases(const MemoryRecording& recording, const DeviceRecording& device,
                              const std::vector<StackFacts>& facts);

// A named range of the program: events [begin, end), by time.
struct AnnotatedRange {
  std::string name;
  std::uint32_t begin = 0, end = 0;
};

// Pairs of START and END of the device, by begin; a START without END ends with the recording. Empty where the
// recording has no times.
std::vector<AnnotatedRange> annotated_ranges(const MemoryRecording& recording, const DeviceRecording& device);

}  // namespace memwall
