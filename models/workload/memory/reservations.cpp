#include "models/workload/memory/reservations.h"

#include <algorithm>
#include <map>

#include "sim/memory/pytorch_constants.h"

namespace memwall {
namespace {

constexpr Bytes kLongestTail = Bytes{1} << 40;  // more than any device
constexpr Bytes kFarthest = Bytes{1} << 42;     // ranges farther apart are two reservations
using Action = MemoryEvent::Action;

Address end_of(const SegmentState& segment) { return segment.address + static_cast<Address>(segment.size); }

void append_unmapped(SegmentState& segment, Bytes size) {
  if (size == 0) return;
  segment.blocks.push_back({end_of(segment), size, 0, BlockState::Use::unmapped});
  segment.size += size;
}

// Of each event, whether the request that comes next, or fails next, is one of the small pool: pages are mapped for it.
std::vector<bool> next_request_is_small(const DeviceRecording& device, const AllocatorSettings& settings) {
  std::vector<bool> small_pool(device.events.size());
  bool next = false;
  for (std::size_t i = device.events.size(); i-- > 0;) {
    const MemoryEvent& event = device.events[i];
    if ((event.action == Action::alloc || event.action == Action::oom) && plausible_size(event.size))
      next = round_request(settings, event.size) <= kSmallRequest;
    small_pool[i] = next;
  }
  return small_pool;
}

}  // namespace

ReservationBounds::Group ReservationBounds::group_of(const ReservedRange& range) {
  if (!range.expandable) return 0;
  return 1 + (Group{range.private_pool} << 17 | Group{range.stream} << 1 | Group{range.small_pool});
}

ReservationBounds::Group ReservationBounds::group_of(const SegmentState& segment) {
  return group_of(
      ReservedRange{segment.size, segment.stream, segment.small_pool, segment.expandable, segment.private_pool});
}

ReservationBounds::ReservationBounds(const DeviceRecording& device, const AllocatorSettings& settings, const ReservedRanges& ranges)
    : large_page_(settings.large_segment_size) {
  Contradictions told_already;
  const ReservedRanges at_end = final_ranges(device, told_already);
  for (const auto& [address, range] : ranges) marks_.push_back({address, group_of(range)});
  for (const auto& [address, range] : at_end) marks_.push_back({address, group_of(range)});
  mark_events(device, settings, at_end);
  std::sort(marks_.begin(), marks_.end());
}

void ReservationBounds::mark_events(const DeviceRecording& device, const AllocatorSettings& settings,
                            const ReservedRanges& at_end) {
  const std::vector<bool> small_pool = next_request_is_small(device, settings);
  for (std::size_t i = 0; i < device.events.size(); ++i) {
    const MemoryEvent& event = device.events[i];
    if (event.action != Action::segment_alloc && event.action != Action::segment_map) continue;
    if (!plausible_address(event.address) || !plausible_size(event.size)) continue;
    if (event.action == Action::segment_alloc) {
      marks_.push_back({event.address, 0});
      continue;
    }
    const auto above = at_end.upper_bound(event.address);
    if (above != at_end.begin() && std::prev(above)->second.expandable &&
        event.address - std::prev(above)->first < static_cast<Address>(std::prev(above)->second.size)) {
      marks_.push_back({event.address, group_of(std::prev(above)->second)});
      continue;
    }
    marks_.push_back({event.address, group_of(ReservedRange{event.size, event.stream, small_pool[i], true, 0})});
  }
}

bool ReservationBounds::belong_together(const SegmentState& low, const SegmentState& high) const {
  if (!low.expandable || group_of(low) != group_of(high)) return false;
  if (high.address - end_of(low) > static_cast<Address>(kFarthest)) return false;
  const auto stranger =
      std::find_if(std::upper_bound(marks_.begin(), marks_.end(), Mark{low.address, ~Group{0}}), marks_.end(),
                   [&](const Mark& mark) { return mark.address >= high.address || mark.group != group_of(low); });
  return stranger == marks_.end() || stranger->address >= high.address;
}

// Pages mapped later below the first one show that the reservation begins there.
Address ReservationBounds::begin_of(const SegmentState& segment, Address not_below) const {
  Address begin = segment.address;
  auto mark = std::lower_bound(marks_.begin(), marks_.end(), Mark{segment.address, 0});
  while (mark != marks_.begin()) {
    --mark;
    if (mark->group != group_of(segment) || mark->address < not_below) break;
    if (segment.address - mark->address > static_cast<Address>(kFarthest)) break;
    begin = mark->address;
  }
  return begin;
}

void ReservationBounds::add_tail(SegmentState& segment) const {
  const auto stranger = std::find_if(std::lower_bound(marks_.begin(), marks_.end(), Mark{end_of(segment), 0}),
                                     marks_.end(), [&](const Mark& mark) { return mark.group != group_of(segment); });
  Bytes room = kLongestTail;
  if (stranger != marks_.end()) room = std::min(room, static_cast<Bytes>(stranger->address - end_of(segment)));
  append_unmapped(segment, room - room % page(segment.small_pool));
}

std::vector<SegmentState> ReservationBounds::join(std::vector<SegmentState> segments, Contradictions& wrong) const {
  std::vector<SegmentState> joined;
  for (SegmentState& segment : segments) {
    const bool goes_on = !joined.empty() && segment.expandable && belong_together(joined.back(), segment);
    if (!goes_on && !joined.empty() && joined.back().expandable) add_tail(joined.back());
    if (!segment.expandable) {
      joined.push_back(std::move(segment));
      continue;
    }
    const Address not_below = joined.empty() ? 0 : end_of(joined.back());
    const Address begin = goes_on ? joined.back().address : begin_of(segment, not_below);
    const auto whole_page = static_cast<Address>(page(segment.small_pool));
    if ((segment.address - begin) % whole_page != 0 || static_cast<Address>(segment.size) % whole_page != 0) {
      wrong.add("the {} bytes mapped at {:#x} are not whole pages of {} bytes; taken as a segment of its own",
                segment.size, segment.address, whole_page);
      if (goes_on) add_tail(joined.back());
      segment.expandable = false;
      joined.push_back(std::move(segment));
      continue;
    }
    if (!goes_on) {
      SegmentState reservation{begin, 0, segment.stream, segment.small_pool, true, segment.private_pool, {}};
      joined.push_back(std::move(reservation));
    }
    SegmentState& reservation = joined.back();
    append_unmapped(reservation, static_cast<Bytes>(segment.address - end_of(reservation)));
    reservation.blocks.insert(reservation.blocks.end(), segment.blocks.begin(), segment.blocks.end());
    reservation.size += segment.size;
  }
  if (!joined.empty() && joined.back().expandable) add_tail(joined.back());
  return joined;
}

namespace {

// Which maps begin a reservation: the first of its stream and pool, and the first after all pages were unmapped.
class Reservations {
 public:
  void begin_with(const SegmentState& segment) {
    Bytes mapped = 0;
    for (const BlockState& block : segment.blocks)
      if (block.use != BlockState::Use::unmapped) mapped += block.size;
    begins_.push_back(segment.address);
    open_[segment.address] = {segment.stream, segment.small_pool, mapped};
  }
  void map(const MemoryEvent& event, bool small_pool) {
    const auto known = below(event.address);
    if (known != open_.end() && known->second.stream == event.stream && known->second.small_pool == small_pool) {
      known->second.mapped += event.size;
      return;
    }
    begins_.push_back(event.address);
    open_[event.address] = {event.stream, small_pool, event.size};
  }
  void unmap(const MemoryEvent& event) {
    const auto known = below(event.address);
    if (known == open_.end()) return;
    known->second.mapped -= event.size;
    if (known->second.mapped <= 0) open_.erase(known);
  }

  Bytes nearest() {
    std::sort(begins_.begin(), begins_.end());
    Bytes nearest = kLongestTail;
    for (std::size_t i = 1; i < begins_.size(); ++i)
      if (begins_[i] != begins_[i - 1]) nearest = std::min(nearest, static_cast<Bytes>(begins_[i] - begins_[i - 1]));
    return nearest;
  }

 private:
  struct Open {
    std::uint16_t stream = 0;
    bool small_pool = false;
    Bytes mapped = 0;
  };
  std::map<Address, Open>::iterator below(Address address) {
    const auto above = open_.upper_bound(address);
    return above == open_.begin() ? open_.end() : std::prev(above);
  }

  std::map<Address, Open> open_;
  std::vector<Address> begins_;  // also of reservations that are gone
};

}  // namespace

Bytes largest_device(const DeviceRecording& device, const AllocatorSettings& settings,
                     const std::vector<SegmentState>& start) {
  Reservations reservations;
  for (const SegmentState& segment : start)
    if (segment.expandable) reservations.begin_with(segment);
  const std::vector<bool> small_pool = next_request_is_small(device, settings);
  for (std::size_t i = 0; i < device.events.size(); ++i) {
    const MemoryEvent& event = device.events[i];
    if (!plausible_address(event.address) || !plausible_size(event.size)) continue;
    if (event.action == Action::segment_map) {
      reservations.map(event, small_pool[i]);
    } else if (event.action == Action::segment_unmap) {
      reservations.unmap(event);
    }
  }
  // A reservation is rounded up to whole pages.
  const Bytes page = settings.large_segment_size;
  return std::max(page, (reservations.nearest() - page) / 9 * 8);
}

}  // namespace memwall
