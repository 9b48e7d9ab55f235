#include "models/workload/import/timed/captured_lifetimes.h"

#include <map>
#include <unordered_map>
#include <utility>

namespace memwall {
namespace {

// Live storages of one device.
struct DeviceState {
  std::unordered_map<std::uint64_t, std::uint32_t> by_address;
  std::unordered_map<Bytes, std::vector<std::uint32_t>> by_size;  // of events without address; newest last
  Bytes held_at_start = -1, freed_preexisting = 0;
};

class LifetimeFinder {
 public:
  explicit LifetimeFinder(const TimedCapture& capture) : c_(capture) {}

  CapturedLifetimes run() {
    found_.storage_of.assign(c_.memory.size(), kNoIndex);
    for (std::uint32_t i = 0; i < c_.memory.size(); ++i) {
      const CapturedMemory& event = c_.memory[i];
      if (!event.on_device() || event.bytes == 0) continue;
      DeviceState& device = devices_[event.device];
      if (device.held_at_start < 0 && event.total_allocated >= 0) note_start(device, event);
      if (!event.has_address) ++found_.without_address;
      found_.storage_of[i] = event.bytes > 0 ? allocate(device, event) : free(device, event);
    }
    for (const auto& [id, device] : devices_)
      if (device.held_at_start > device.freed_preexisting)
        found_.untracked += device.held_at_start - device.freed_preexisting;
    return std::move(found_);
  }

 private:
  // Totals are reported after the event.
  void note_start(DeviceState& device, const CapturedMemory& event) {
    device.held_at_start = event.total_allocated > event.bytes ? event.total_allocated - event.bytes : 0;
    if (event.total_reserved > 0) found_.reserved += event.total_reserved;
  }

  std::uint32_t add(Bytes bytes, bool preexisting) {
    found_.storages.push_back({bytes, preexisting});
    return static_cast<std::uint32_t>(found_.storages.size() - 1);
  }

  std::uint32_t allocate(DeviceState& device, const CapturedMemory& event) {
    const std::uint32_t storage = add(event.bytes, false);
    if (!event.has_address) {
      device.by_size[event.bytes].push_back(storage);
    } else if (!device.by_address.insert_or_assign(event.address, storage).second) {
      ++found_.replaced;
    }
    return storage;
  }

  std::uint32_t free(DeviceState& device, const CapturedMemory& event) {
    if (event.has_address) {
      const auto live = device.by_address.find(event.address);
      if (live != device.by_address.end()) {
        const std::uint32_t storage = live->second;
        device.by_address.erase(live);
        if (found_.storages[storage].bytes != -event.bytes) ++found_.resized;
        return storage;
      }
    } else if (std::vector<std::uint32_t>& live = device.by_size[-event.bytes]; !live.empty()) {
      const std::uint32_t storage = live.back();
      live.pop_back();
      return storage;
    }
    ++found_.preexisting;
    device.freed_preexisting -= event.bytes;
    return add(-event.bytes, true);
  }

  const TimedCapture& c_;
  CapturedLifetimes found_;
  std::map<std::int32_t, DeviceState> devices_;
};

}  // namespace

CapturedLifetimes find_lifetimes(const TimedCapture& capture) { return LifetimeFinder(capture).run(); }

}  // namespace memwall
