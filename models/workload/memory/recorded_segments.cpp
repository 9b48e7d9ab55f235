#include "models/workload/memory/recorded_segments.h"

#include <algorithm>

#include "models/workload/memory/reverse_replay.h"

namespace memwall {
namespace {

constexpr Address kAlignment = Address{2} << 20;
constexpr Bytes kSmallPage = MiB(2);  // what a small request maps: one page, and never more
constexpr Address kLast = Address{1} << 62;
using Action = MemoryEvent::Action;

}  // namespace

RecordedSegments::RecordedSegments(const DeviceRecording& device) {
  Address last = 0;
  const auto reach = [&](Address address, Bytes size) {
    if (plausible_address(address) && plausible_size(size)) last = std::max(last, address + static_cast<Address>(size));
  };
  for (const RecordedSegment& segment : device.segments) reach(segment.address, segment.size);
  for (const MemoryEvent& event : device.events)
    if (event.action < Action::oom) reach(event.address, event.size);
  // Expandable segments of the recording go on above what is mapped.
  next_ = (last + (Address{1} << 43)) / kAlignment * kAlignment;
}

void RecordedSegments::hold(const std::vector<SegmentState>& segments) {
  for (const SegmentState& segment : segments)
    held_.emplace(segment.address, segment.address + static_cast<Address>(segment.size));
}

std::optional<Address> RecordedSegments::obtain(Bytes bytes) {
  for (const MemoryEvent& event : expected_)
    if (event.action == Action::segment_alloc && event.size == bytes && is_free(event.address, bytes))
      return take(event.address, bytes);
  return invent(bytes);
}

// The first page of a new expandable segment is mapped at its begin.
std::optional<Address> RecordedSegments::reserve(Bytes bytes) {
  for (const MemoryEvent& event : expected_)
    if (event.action == Action::segment_map && is_free(event.address, bytes)) return take(event.address, bytes);
  for (const MemoryEvent& event : later_) {
    if (++looked_ahead_ > kMostLookedAhead) break;
    if (event.action != Action::segment_map || event.stream != later_stream_) continue;
    const bool small = event.size == kSmallPage;
    if (small == later_small_ && is_free(event.address, bytes)) return take(event.address, bytes);
  }
  return invent(bytes);
}

bool RecordedSegments::is_free(Address address, Bytes bytes) const {
  if (!plausible_address(address)) return false;
  const auto above = held_.lower_bound(address);
  if (above != held_.end() && above->first < address + static_cast<Address>(bytes)) return false;
  return above == held_.begin() || std::prev(above)->second <= address;
}

std::optional<Address> RecordedSegments::take(Address address, Bytes bytes) {
  held_.emplace(address, address + static_cast<Address>(bytes));
  return address;
}

std::optional<Address> RecordedSegments::invent(Bytes bytes) {
  if (static_cast<Address>(bytes) > kLast - next_) return std::nullopt;
  const Address address = next_;
  next_ = (address + static_cast<Address>(bytes) + kAlignment - 1) / kAlignment * kAlignment;
  ++invented_;
  return take(address, bytes);
}

}  // namespace memwall
