#include "models/workload/memory/snapshot_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/error.h"

namespace memwall {
namespace {

Bytes reserved_at_end(const DeviceRecording& device) {
  Bytes sum = 0;
  for (const RecordedSegment& segment : device.segments) sum += segment.size;
  return sum;
}

}  // namespace

std::size_t snapshot_device(const MemoryRecording& recording, const std::filesystem::path& path,
                            std::optional<int> asked) {
  const auto& devices = recording.devices;
  if (devices.empty())
    throw InputError(
        fmt::format("{}: the snapshot holds neither events nor segments of any device; was "
                    "torch.cuda.memory._record_memory_history() called before the work?",
                    path.string()));
  if (!asked)
    return static_cast<std::size_t>(std::max_element(devices.begin(), devices.end(),
                                                     [](const DeviceRecording& a, const DeviceRecording& b) {
                                                       return std::pair(reserved_at_end(a), a.events.size()) <
                                                              std::pair(reserved_at_end(b), b.events.size());
                                                     }) -
                                    devices.begin());
  std::string known;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (devices[i].device == *asked) return i;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", devices[i].device);
  }
  throw UsageError(fmt::format("--device {}: {} has nothing of that device; it has {}.", *asked, path.string(), known));
}

}  // namespace memwall
