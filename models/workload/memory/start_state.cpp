#include "models/workload/memory/start_state.h"

#include <algorithm>

#include "models/workload/memory/reverse_replay.h"
#include "models/workload/memory/reservations.h"
#include "models/workload/memory/start_block_sizes.h"
#include "sim/memory/address_table.h"

namespace memwall {
namespace {

using Action = MemoryEvent::Action;

// Does a recording explain itself: is everything that it frees, and every place that it fills, something that it showed
// being made?
class SelfContained {
 public:
  bool event(const MemoryEvent& event) {
    switch (event.action) {
      case Action::alloc:
        return inside(event.address, event.size) && live_.find(event.address) == AddressTable::kAbsent &&
               (live_.insert(event.address, 0), true);
      case Action::free_requested:
        return live_.find(event.address) != AddressTable::kAbsent;
      case Action::free_completed:
        if (live_.find(event.address) == AddressTable::kAbsent) return false;
        live_.erase(event.address);
        return true;
      case Action::segment_alloc:
      case Action::segment_map:
        return obtain(event.address, event.size);
      case Action::segment_free:
      case Action::segment_unmap:
        return give_back(event.address, event.size);
      default:
        return true;
    }
  }

  // Is the segment, or mapped range, one that was seen?
  bool inside(Address address, Bytes size) const {
    const auto after = ranges_.upper_bound(address);
    if (!plausible_address(address) || !plausible_size(size) || after == ranges_.begin()) return false;
    return address + static_cast<Address>(size) <= std::prev(after)->second;
  }

 private:
  // Touching ranges are joined: a block of an expandable segment goes over many mappings.
  bool obtain(Address address, Bytes size) {
    if (!plausible_address(address) || !plausible_size(size)) return false;
    Address end = address + static_cast<Address>(size);
    auto next = ranges_.lower_bound(address);
    if (next != ranges_.end() && next->first < end) return false;
    if (next != ranges_.end() && next->first == end) {
      end = next->second;
      next = ranges_.erase(next);
    }
    if (next != ranges_.begin() && std::prev(next)->second >= address) {
      if (std::prev(next)->second > address) return false;
      std::prev(next)->second = end;
      return true;
    }
    ranges_.emplace(address, end);
    return true;
  }

  bool give_back(Address address, Bytes size) {
    if (!inside(address, size)) return false;
    const auto range = std::prev(ranges_.upper_bound(address));
    const Address end = address + static_cast<Address>(size), range_end = range->second;
    range->second = address;
    if (range->first == address) ranges_.erase(range);
    if (end < range_end) ranges_.emplace(end, range_end);
    return true;
  }

  AddressTable live_;
  std::map<Address, Address> ranges_;  // begin -> end
};

// A segment at the end that the events did not show being obtained was there before them.
bool begins_empty(const DeviceRecording& device) {
  if (device.events.empty()) return device.segments.empty();
  SelfContained recording;
  for (const MemoryEvent& event : device.events)
    if (!recording.event(event)) return false;
  return std::all_of(device.segments.begin(), device.segments.end(),
                     [&](const RecordedSegment& segment) { return recording.inside(segment.address, segment.size); });
}

// What lies between the blocks of a segment is free: a cache has no two free neighbours.
SegmentState segment_of(Address address, const ReservedRange& range, const std::vector<SizedBlock>& blocks) {
  SegmentState segment{address, range.size, range.stream, range.small_pool, range.expandable, range.private_pool, {}};
  Address next = address;
  const auto free_until = [&](Address end) {
    if (end > next) segment.blocks.push_back({next, static_cast<Bytes>(end - next), 0, BlockState::Use::free});
  };
  for (const SizedBlock& block : blocks) {
    free_until(block.address);
    segment.blocks.push_back({block.address, block.size, block.requested,
                              block.pending ? BlockState::Use::pending : BlockState::Use::in_use});
    next = block.address + static_cast<Address>(block.size);
  }
  free_until(address + static_cast<Address>(range.size));
  return segment;
}

// A program that gave everything back has no segments at its end, rightly.
bool ends_empty(const DeviceRecording& device) {
  Contradictions wrong;
  reverse_replay(device, true, wrong);
  return wrong.none();
}

}  // namespace

StartState find_start_state(const DeviceRecording& device, const AllocatorSettings& settings, bool look_ahead) {
  StartState state;
  state.empty = begins_empty(device);
  if (state.empty) return state;
  Contradictions wrong;
  const bool has_end = !device.segments.empty() || ends_empty(device);
  if (!has_end)
    wrong.add("the recording does not begin empty and has no segments: what lived before it cannot be found");
  const InitialState earlier = reverse_replay(device, has_end, wrong);
  const std::vector<std::vector<SizedBlock>> blocks = size_blocks(device, settings, earlier, wrong, look_ahead);
  std::size_t range_number = 0;
  for (const auto& [address, range] : earlier.ranges)
    state.segments.push_back(segment_of(address, range, blocks[range_number++]));
  const bool expandable = std::any_of(state.segments.begin(), state.segments.end(),
                                      [](const SegmentState& segment) { return segment.expandable; });
  if (expandable) state.segments = ReservationBounds(device, settings, earlier.ranges).join(std::move(state.segments), wrong);
  for (const InitialBlock& block : earlier.blocks)
    if (block.stack != 0) state.stacks.emplace_back(block.address, block.stack);
  state.contradictions = wrong.sentences();
  return state;
}

}  // namespace memwall
