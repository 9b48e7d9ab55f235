#include "validate/replay/cuda/device_segments.h"

#include <exception>

#include "validate/replay/cuda/cuda_handles.h"

namespace memwall {

DeviceSegments::~DeviceSegments() {
  for (const Address address : segments_) cudaFree(reinterpret_cast<void*>(address));
}

std::optional<Address> DeviceSegments::obtain(Bytes bytes) {
  check(cudaSetDevice(device_), "cudaSetDevice");
  void* data = nullptr;
  const cudaError_t code = cudaMalloc(&data, static_cast<std::size_t>(bytes));
  if (code == cudaErrorMemoryAllocation) {
    (void)cudaGetLastError();  // it would be reported by the next launch
    return std::nullopt;
  }
  check(code, "cudaMalloc");
  const auto address = reinterpret_cast<Address>(data);
  const std::lock_guard lock(mutex_);
  segments_.insert(address);
  return address;
}

void DeviceSegments::give_back(Address address, Bytes) {
  try {
    before_free_();
  } catch (const std::exception&) {
  }
  {
    const std::lock_guard lock(mutex_);
    segments_.erase(address);
  }
  (void)cudaSetDevice(device_);
  (void)cudaFree(reinterpret_cast<void*>(address));
}

}  // namespace memwall
