#include "models/workload/memory/reverse_replay.h"

#include <algorithm>

#include "sim/memory/address_table.h"
#include "sim/memory/pytorch_constants.h"

namespace memwall {
namespace {

constexpr Bytes kLargePage = MiB(20);       // CUDACachingAllocator.cpp: kLargeBuffer
constexpr Address kFar = Address{1} << 32;  // less than any reservation that could be mistaken

Address end_of(ReservedRanges::const_iterator range) { return range->first + static_cast<Address>(range->second.size); }

bool plausible_range(Address address, Bytes size) {
  return plausible_address(address) && plausible_size(size) && size % kQuantum == 0;
}

// The range that holds `address`, or end().
template <typename Ranges>
auto holder(Ranges& ranges, Address address) {
  auto after = ranges.upper_bound(address);
  if (after == ranges.begin()) return ranges.end();
  --after;
  return address < end_of(after) ? after : ranges.end();
}

bool overlaps(const ReservedRanges& ranges, Address address, Bytes size) {
  const auto next = ranges.lower_bound(address);
  if (next != ranges.end() && next->first < address + static_cast<Address>(size)) return true;
  return next != ranges.begin() && end_of(std::prev(next)) > address;
}

// False, and nothing done, where it overlaps another.
bool insert(ReservedRanges& ranges, Address address, const ReservedRange& range) {
  if (overlaps(ranges, address, range.size)) return false;
  auto here = ranges.emplace(address, range).first;
  if (!range.expandable) return true;
  const auto next = std::next(here);
  if (next != ranges.end() && next->first == end_of(here) && next->second.same_pool(range)) {
    here->second.size += next->second.size;
    ranges.erase(next);
  }
  if (here == ranges.begin()) return true;
  const auto previous = std::prev(here);
  if (end_of(previous) == address && previous->second.same_pool(range)) {
    previous->second.size += here->second.size;
    ranges.erase(here);
  }
  return true;
}

class ReverseReplay {
 public:
  ReverseReplay(const DeviceRecording& device, bool has_end, Contradictions& wrong)
      : device_(device), wrong_(wrong), has_end_(has_end) {}

  InitialState run() {
    begin_at_the_end();
    tells_requests_ = std::any_of(device_.events.begin(), device_.events.end(), [](const MemoryEvent& event) {
      return event.action == MemoryEvent::Action::free_requested;
    });
    for (std::size_t i = device_.events.size(); i-- > 0;) undo(static_cast<std::uint32_t>(i), device_.events[i]);
    InitialState state;
    state.ranges = std::move(ranges_);
    for (const InitialBlock& block : blocks_)
      if (block.address != 0) state.blocks.push_back(block);
    std::sort(state.blocks.begin(), state.blocks.end(),
              [](const InitialBlock& a, const InitialBlock& b) { return a.address < b.address; });
    return state;
  }

 private:
  using Action = MemoryEvent::Action;

  void begin_at_the_end();
  void undo(std::uint32_t i, const MemoryEvent& event);
  void undo_alloc(std::uint32_t i, const MemoryEvent& event);
  void undo_free_requested(std::uint32_t i, const MemoryEvent& event);
  void undo_free_completed(std::uint32_t i, const MemoryEvent& event);
  void undo_segment_alloc(std::uint32_t i, const MemoryEvent& event);
  void undo_segment_free(std::uint32_t i, const MemoryEvent& event);
  void undo_map(std::uint32_t i, const MemoryEvent& event);
  void undo_unmap(std::uint32_t i, const MemoryEvent& event);
  bool unmapped_from_small_pool(const MemoryEvent& event);

  void add(const InitialBlock& block) {
    std::uint32_t id = static_cast<std::uint32_t>(blocks_.size());
    if (unused_.empty()) {
      blocks_.push_back(block);
    } else {
      id = unused_.back();
      unused_.pop_back();
      blocks_[id] = block;
    }
    live_.insert(block.address, id);
  }
  void remove(std::uint32_t id) {
    live_.erase(blocks_[id].address);
    blocks_[id] = {};  // address 0 = not in use
    unused_.push_back(id);
  }

  const DeviceRecording& device_;
  Contradictions& wrong_;
  bool has_end_;                // else nothing can be said of what lives to the end
  bool tells_requests_ = true;  // the recording has free_requested at all
  ReservedRanges ranges_;
  std::vector<InitialBlock> blocks_;
  std::vector<std::uint32_t> unused_;
  AddressTable live_;
  std::vector<std::pair<Address, bool>> requests_;  // address, small; made when first needed
};

void ReverseReplay::begin_at_the_end() {
  ranges_ = final_ranges(device_, wrong_);
  for (const RecordedSegment& segment : device_.segments) {
    for (const RecordedBlock& block : segment.blocks) {
      if (block.state == RecordedBlock::State::inactive) continue;
      const auto range = holder(ranges_, block.address);
      if (!plausible_range(block.address, block.size) || range == ranges_.end() ||
          block.address + static_cast<Address>(block.size) > end_of(range) ||
          live_.find(block.address) != AddressTable::kAbsent) {
        wrong_.add("block {:#x} of {} bytes does not lie in its segment {:#x}, or is there twice", block.address,
                   block.size, segment.address);
        continue;
      }
      add({block.address, block.size, block.requested, block.stack, InitialBlock::kNever, segment.stream,
           block.state == RecordedBlock::State::pending});
    }
  }
}

void ReverseReplay::undo(std::uint32_t i, const MemoryEvent& event) {
  if (event.action >= Action::oom) return;  // addresses of these name no memory
  if (!plausible_address(event.address) || !plausible_size(event.size)) {
    wrong_.at_event(i, "{} of {} bytes at {:#x}: no allocator gives such a piece", to_string(event.action), event.size,
                    event.address);
    return;
  }
  switch (event.action) {
    case Action::alloc:
      return undo_alloc(i, event);
    case Action::free_requested:
      return undo_free_requested(i, event);
    case Action::free_completed:
      return undo_free_completed(i, event);
    case Action::segment_alloc:
      return undo_segment_alloc(i, event);
    case Action::segment_free:
      return undo_segment_free(i, event);
    case Action::segment_map:
      return undo_map(i, event);
    case Action::segment_unmap:
      return undo_unmap(i, event);
    default:
      return;
  }
}

void ReverseReplay::undo_alloc(std::uint32_t i, const MemoryEvent& event) {
  const std::uint32_t id = live_.find(event.address);
  if (id == AddressTable::kAbsent) {
    if (has_end_)
      wrong_.at_event(i, "{} bytes allocated at {:#x} are never freed and not in the segments at the end", event.size,
                      event.address);
    return;
  }
  const InitialBlock& block = blocks_[id];
  // Old files do not tell what was requested; their reader puts 0 or the block's size there.
  if (block.requested != 0 && block.requested != block.size && block.requested != event.size)
    wrong_.at_event(i, "{} bytes allocated at {:#x}, which later are {}", event.size, event.address, block.requested);
  else if (block.size != 0 && block.size < event.size)
    wrong_.at_event(i, "{} bytes allocated at {:#x} in a block of {}", event.size, event.address, block.size);
  remove(id);
}

void ReverseReplay::undo_free_requested(std::uint32_t i, const MemoryEvent& event) {
  const std::uint32_t id = live_.find(event.address);
  if (id != AddressTable::kAbsent) {
    if (!blocks_[id].pending) wrong_.at_event(i, "a free of {:#x}, which lives on", event.address);
    blocks_[id].pending = false;
    return;
  }
  if (has_end_)
    wrong_.at_event(i, "a free of {:#x} that never completes, and the segments at the end do not have it",
                    event.address);
  add({event.address, 0, event.size, 0, i, event.stream, false});
}

void ReverseReplay::undo_free_completed(std::uint32_t i, const MemoryEvent& event) {
  const std::uint32_t id = live_.find(event.address);
  if (id != AddressTable::kAbsent) {
    wrong_.at_event(i, "{:#x} was freed, but lives later without an alloc", event.address);
    remove(id);
  }
  add({event.address, 0, event.size, 0, i, event.stream, tells_requests_});
}

void ReverseReplay::undo_segment_alloc(std::uint32_t i, const MemoryEvent& event) {
  const auto range = ranges_.find(event.address);
  if (range == ranges_.end() || range->second.expandable || range->second.size != event.size) {
    if (has_end_)
      wrong_.at_event(i, "a segment of {} bytes at {:#x}, which is not there later", event.size, event.address);
    return;
  }
  ranges_.erase(range);
}

void ReverseReplay::undo_segment_free(std::uint32_t i, const MemoryEvent& event) {
  const ReservedRange range{event.size, event.stream, event.size == kSmallSegment, false, 0};
  if (!plausible_range(event.address, event.size) || !insert(ranges_, event.address, range))
    wrong_.at_event(i, "a segment of {} bytes at {:#x} was freed where later another one is", event.size,
                    event.address);
}

// The range need not be the whole of what is mapped there.
void ReverseReplay::undo_map(std::uint32_t i, const MemoryEvent& event) {
  const auto range = holder(ranges_, event.address);
  const Address end = event.address + static_cast<Address>(event.size);
  if (range == ranges_.end() || !range->second.expandable || end > end_of(range) || event.size % kQuantum != 0) {
    if (has_end_) wrong_.at_event(i, "{} bytes mapped at {:#x}, which are not there later", event.size, event.address);
    return;
  }
  ReservedRange above = range->second;
  above.size = static_cast<Bytes>(end_of(range) - end);
  range->second.size = static_cast<Bytes>(event.address - range->first);
  if (range->second.size == 0) ranges_.erase(range);
  if (above.size > 0) ranges_.emplace(end, above);
}

// The event does not tell the pool. Requests that lay in the range do, else those nearest to it: reservations are far
// apart. Whole large pages mean the large pool where there were none.
bool ReverseReplay::unmapped_from_small_pool(const MemoryEvent& event) {
  if (event.size % kLargePage != 0) return true;
  if (requests_.empty()) {
    for (const MemoryEvent& other : device_.events)
      if (other.action == Action::alloc || other.action == Action::free_completed)
        requests_.emplace_back(other.address, other.size <= kSmallRequest);
    std::sort(requests_.begin(), requests_.end());
  }
  const auto above = std::lower_bound(requests_.begin(), requests_.end(), std::pair{event.address, false});
  const Address end = event.address + static_cast<Address>(event.size);
  if (above != requests_.end() && above->first < end) return above->second;
  const Address to_above = above == requests_.end() ? kFar : above->first - end;
  const Address to_below = above == requests_.begin() ? kFar : event.address - std::prev(above)->first;
  if (std::min(to_above, to_below) >= kFar) return false;
  return to_above < to_below ? above->second : std::prev(above)->second;
}

void ReverseReplay::undo_unmap(std::uint32_t i, const MemoryEvent& event) {
  const ReservedRange range{event.size, event.stream, unmapped_from_small_pool(event), true, 0};
  if (!plausible_range(event.address, event.size) || !insert(ranges_, event.address, range))
    wrong_.at_event(i, "{} bytes at {:#x} were unmapped where later something else is", event.size, event.address);
}

}  // namespace

bool plausible_address(Address address) {
  return address != 0 && address % kQuantum == 0 && address < (Address{1} << 57);  // five-level page tables
}

bool plausible_size(Bytes size) { return size > 0 && size <= (Bytes{1} << 44); }

std::vector<std::array<std::int64_t, 2>> private_pools(const DeviceRecording& device) {
  std::vector<std::array<std::int64_t, 2>> pools;
  for (const RecordedSegment& segment : device.segments)
    if (segment.pool != std::array<std::int64_t, 2>{}) pools.push_back(segment.pool);
  std::sort(pools.begin(), pools.end());
  pools.erase(std::unique(pools.begin(), pools.end()), pools.end());
  return pools;
}

ReservedRanges final_ranges(const DeviceRecording& device, Contradictions& wrong) {
  ReservedRanges ranges;
  const auto pools = private_pools(device);
  for (const RecordedSegment& segment : device.segments) {
    const auto pool = std::lower_bound(pools.begin(), pools.end(), segment.pool);
    const bool is_private = pool != pools.end() && *pool == segment.pool;
    const ReservedRange range{segment.size, segment.stream, segment.small_pool, segment.expandable,
                          is_private ? static_cast<std::uint32_t>(pool - pools.begin()) + 1 : 0};
    if (!plausible_range(segment.address, segment.size) || !insert(ranges, segment.address, range))
      wrong.add("segment {:#x} of {} bytes overlaps another one, or is no piece that an allocator gets",
                segment.address, segment.size);
  }
  return ranges;
}

InitialState reverse_replay(const DeviceRecording& device, bool has_end, Contradictions& wrong) {
  return ReverseReplay(device, has_end, wrong).run();
}

}  // namespace memwall
