#include "models/workload/forecast/recorded_series.h"

#include <algorithm>
#include <unordered_set>

namespace memwall {
namespace {

double live_at_end(const DeviceRecording& device) {
  double live = 0;
  for (const RecordedSegment& segment : device.segments)
    for (const RecordedBlock& block : segment.blocks)
      if (block.state == RecordedBlock::State::allocated)
        live += static_cast<double>(block.requested > 0 ? block.requested : block.size);
  return live;
}

}  // namespace

std::vector<double> live_bytes_of(const DeviceRecording& device) {
  std::vector<double> bytes;
  bytes.reserve(device.events.size());
  std::unordered_set<Address> pending;  // freed by the host, still used by a stream
  double live = 0, lowest = 0;
  for (const MemoryEvent& e : device.events) {
    if (e.action == MemoryEvent::Action::alloc) live += static_cast<double>(e.size);
    if (e.action == MemoryEvent::Action::free_requested) {
      live -= static_cast<double>(e.size);
      pending.insert(e.address);
    }
    // A recording may lack free_requested: what is completed without it was freed now.
    if (e.action == MemoryEvent::Action::free_completed && pending.erase(e.address) == 0)
      live -= static_cast<double>(e.size);
    lowest = std::min(lowest, live);
    bytes.push_back(live);
  }
  const double start = device.segments.empty() ? -lowest : std::max(live_at_end(device) - live, -lowest);
  for (double& b : bytes) b += start;
  return bytes;
}

}  // namespace memwall
