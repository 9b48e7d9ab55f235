// Where a memory snapshot contradicts itself: segments that overlap, blocks that do not cover theirs, sums that differ.
//
// What contradicts is kept as it is and told in notes; a replay decides what it can make of it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "models/workload/memory/recording.h"

namespace memwall {

class SnapshotCheck {
 public:
  // `recorded`: allocated_size, active_size and requested_size as the file has them; -1 = it has not.
  void compare_sums(const RecordedSegment& segment, const std::array<Bytes, 3>& recorded);
  // Sorts segments and blocks by address, looks at them and at the events' times, and adds the notes.
  void finish(MemoryRecording& recording);

 private:
  struct Finding {
    std::uint64_t count = 0;
    std::string first;
  };
  void found(Finding& finding, std::string what);
  void check_blocks(RecordedSegment& segment);
  void check_segments(DeviceRecording& device);
  void check_times(const DeviceRecording& device, std::vector<std::string>& notes);

  Finding sums_, overlaps_, gaps_, order_, demands_;
};

}  // namespace memwall
