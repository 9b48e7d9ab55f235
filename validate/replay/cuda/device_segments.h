// Device memory in segments, as PyTorch's allocator obtains it: cudaMalloc and cudaFree.
#pragma once

#include <functional>
#include <mutex>
#include <set>

#include "sim/memory/pytorch_allocator.h"

namespace memwall {

class DeviceSegments final : public SegmentSource {
 public:
  // `before_free` waits for the device. cudaFree does so too, but while it holds the driver's lock, which a thread
  // that the device waits for may want.
  DeviceSegments(int device, std::function<void()> before_free)
      : device_(device), before_free_(std::move(before_free)) {}
  ~DeviceSegments() override;
  DeviceSegments(const DeviceSegments&) = delete;
  DeviceSegments& operator=(const DeviceSegments&) = delete;

  // Throws CudaError for anything but a lack of memory.
  std::optional<Address> obtain(Bytes bytes) override;
  // Never throws, as destructors call it: what has failed on the device is said by other calls.
  void give_back(Address address, Bytes bytes) override;

 private:
  int device_;
  std::function<void()> before_free_;
  std::mutex mutex_;
  std::set<Address> segments_;
};

}  // namespace memwall
