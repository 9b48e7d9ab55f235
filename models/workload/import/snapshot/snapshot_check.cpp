#include "models/workload/import/snapshot/snapshot_check.h"

#include <fmt/format.h>

#include <algorithm>

namespace memwall {

void SnapshotCheck::found(Finding& finding, std::string what) {
  if (finding.count++ == 0) finding.first = std::move(what);
}

void SnapshotCheck::compare_sums(const RecordedSegment& segment, const std::array<Bytes, 3>& recorded) {
  static constexpr const char* kNames[] = {"allocated_size", "active_size", "requested_size"};
  std::array<Bytes, 3> sums{};
  for (const RecordedBlock& block : segment.blocks) {
    if (block.state == RecordedBlock::State::allocated) sums[0] += block.size;
    if (block.state == RecordedBlock::State::inactive) continue;
    sums[1] += block.size;
    sums[2] += block.requested;
  }
  for (int i = 0; i < 3; ++i)
    if (recorded[i] >= 0 && recorded[i] != sums[i])
      found(sums_, fmt::format("{} of segment 0x{:x} is {}, its blocks make {}", kNames[i], segment.address,
                               recorded[i], sums[i]));
}

void SnapshotCheck::check_blocks(RecordedSegment& segment) {
  const auto ascending = [](const RecordedBlock& a, const RecordedBlock& b) { return a.address < b.address; };
  if (!std::ranges::is_sorted(segment.blocks, ascending)) {
    found(order_, fmt::format("segment 0x{:x}", segment.address));
    std::ranges::stable_sort(segment.blocks, ascending);
  }
  Address end = segment.address;
  for (const RecordedBlock& block : segment.blocks) {
    if (block.state != RecordedBlock::State::inactive && block.requested > block.size)
      found(demands_, fmt::format("block 0x{:x} of {} bytes for {}", block.address, block.size, block.requested));
    if (block.address != end) {
      return found(gaps_, fmt::format("segment 0x{:x} at 0x{:x}", segment.address, std::min(end, block.address)));
    }
    end += static_cast<Address>(block.size);
  }
  if (end != segment.address + static_cast<Address>(segment.size))
    found(gaps_, fmt::format("segment 0x{:x} at 0x{:x}", segment.address, end));
}

void SnapshotCheck::check_segments(DeviceRecording& device) {
  std::ranges::stable_sort(device.segments,
                           [](const RecordedSegment& a, const RecordedSegment& b) { return a.address < b.address; });
  Address end = 0;
  for (RecordedSegment& segment : device.segments) {
    if (segment.address < end) found(overlaps_, fmt::format("0x{:x}", segment.address));
    end = std::max(end, segment.address + static_cast<Address>(segment.size));
    check_blocks(segment);
  }
}

void SnapshotCheck::check_times(const DeviceRecording& device, std::vector<std::string>& notes) {
  std::uint64_t backward = 0;
  for (std::size_t i = 1; i < device.events.size(); ++i)
    backward += device.events[i].time_us < device.events[i - 1].time_us;
  if (backward > 0)
    notes.push_back(fmt::format("device {}: time runs backward at {} trace entries; their order is what counts.",
                                device.device, backward));
}

void SnapshotCheck::finish(MemoryRecording& recording) {
  for (DeviceRecording& device : recording.devices) {
    check_segments(device);
    if (recording.has_times) check_times(device, recording.notes);
  }
  const auto tell = [&](const Finding& finding, const char* what) {
    if (finding.count > 0)
      recording.notes.push_back(
          fmt::format("The file contradicts itself: {} ({} times, first {}).", what, finding.count, finding.first));
  };
  tell(overlaps_, "segments overlap");
  tell(order_, "blocks of a segment are not in the order of their addresses");
  tell(gaps_, "blocks do not cover their segment exactly");
  tell(sums_, "sums of a segment differ from those of its blocks");
  tell(demands_, "more was requested than a block holds");
}

}  // namespace memwall
