// The address ranges that expandable segments reserve.
//
// A recording names mapped ranges only. That they belong to one reservation, where it begins and how far it goes is
// concluded from every address that the recording names: ranges of one pool and stream belong together as long as
// nothing else lies between them, and a reservation goes on to the next thing above it. PyTorch reserves 9/8 of the
// device's memory (CUDACachingAllocator.cpp, ExpandableSegment), so that in practice there is one per pool and stream.
#pragma once

#include <vector>

#include "models/workload/memory/reverse_replay.h"
#include "sim/memory/pytorch_allocator.h"

namespace memwall {

class ReservationBounds {
 public:
  // `ranges`: those at the start.
  ReservationBounds(const DeviceRecording& device, const AllocatorSettings& settings, const ReservedRanges& ranges);

  // `segments`: by address, the expandable ones still single mapped ranges. These are joined, with unmapped blocks
  // between, before and behind them.
  std::vector<SegmentState> join(std::vector<SegmentState> segments, Contradictions& wrong) const;

 private:
  // 0: no expandable segment.
  using Group = std::uint64_t;
  struct Mark {
    Address address = 0;
    Group group = 0;
    bool operator<(const Mark& other) const {
      return address != other.address ? address < other.address : group < other.group;
    }
  };

  static Group group_of(const ReservedRange& range);
  static Group group_of(const SegmentState& segment);
  void mark_events(const DeviceRecording& device, const AllocatorSettings& settings, const ReservedRanges& final_ranges);
  bool belong_together(const SegmentState& low, const SegmentState& high) const;
  Address begin_of(const SegmentState& segment, Address not_below) const;
  void add_tail(SegmentState& segment) const;

  Bytes page(bool small_pool) const { return small_pool ? MiB(2) : large_page_; }

  std::vector<Mark> marks_;  // by address
  Bytes large_page_;
};

// The device's whole memory, at most: reservations of 9/8 of it do not reach the next thing above them. 1 TiB where
// nothing limits it. `start`: the segments at the start.
Bytes largest_device(const DeviceRecording& device, const AllocatorSettings& settings,
                     const std::vector<SegmentState>& start);

}  // namespace memwall
