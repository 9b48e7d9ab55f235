#include "validate/replay/cuda/stream_counter.h"

#include <cuda.h>

#include <atomic>
#include <stdexcept>
#include <string>

#include "validate/replay/cuda/synthetic_kernels.h"

namespace memwall {
namespace {

using WaitValue = CUresult (*)(CUstream, CUdeviceptr, cuuint32_t, unsigned);

// Null where the driver lacks it.
void* find_wait_value() {
  try {
    return driver_entry_point("cuStreamWaitValue32", 12000);
  } catch (const std::runtime_error&) {
    return nullptr;
  }
}

CUresult wait_value(void* function, cudaStream_t stream, void* address, std::uint32_t value) {
  return reinterpret_cast<WaitValue>(function)(stream, reinterpret_cast<CUdeviceptr>(address), value,
                                               CU_STREAM_WAIT_VALUE_GEQ);
}

}  // namespace

StreamCounter::StreamCounter() {
  std::atomic_ref(*word_.as<std::uint32_t>()).store(0);
  check(cudaHostGetDevicePointer(&device_address_, word_.data(), 0), "cudaHostGetDevicePointer");
  // A wait that is already over tells whether the device takes such operations; and it loads the kernel, which
  // cannot be loaded while a stream is held.
  const CudaStream trial;
  void* function = find_wait_value();
  if (function != nullptr && wait_value(function, trial.get(), device_address_, 0) == CUDA_SUCCESS)
    wait_value_ = function;
  else
    hold(trial.get(), 0);
  trial.synchronize();
}

void StreamCounter::raise_to(std::uint32_t value) {
  std::atomic_ref(*word_.as<std::uint32_t>()).store(value, std::memory_order_release);
}

void StreamCounter::hold(cudaStream_t stream, std::uint32_t value) const {
  if (wait_value_ == nullptr) return launch_wait_for(static_cast<const std::uint32_t*>(device_address_), value, stream);
  const CUresult result = wait_value(wait_value_, stream, device_address_, value);
  if (result != CUDA_SUCCESS)
    throw std::runtime_error("cuStreamWaitValue32 failed: driver error " + std::to_string(result) + ".");
}

}  // namespace memwall
