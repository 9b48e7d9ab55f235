// A number that the host raises and CUDA streams wait for: how work on a stream waits for what a thread of the
// host does, without that thread calling CUDA.
//
// Waiting is a memory operation of the stream (cuStreamWaitValue32) where the driver has it, else a kernel of one
// warp that polls. Streams that share a hardware queue with a waiting one wait as well; make_cuda_backend asks for
// as many queues as there can be (CUDA_DEVICE_MAX_CONNECTIONS).
#pragma once

#include <cstdint>

#include "validate/replay/cuda/cuda_handles.h"

namespace memwall {

class StreamCounter {
 public:
  // 0 at first. Throws CudaError. REQUIRES: a device is current.
  StreamCounter();

  // From any thread; what the thread wrote before is seen by what waits. REQUIRES: not below the present value.
  void raise_to(std::uint32_t value);
  // What is submitted to `stream` from now on begins once the counter has reached `value`. Values are compared by
  // their difference, so that they may pass 2^32. Throws.
  void hold(cudaStream_t stream, std::uint32_t value) const;
  bool by_memory_operation() const { return wait_value_ != nullptr; }

 private:
  PinnedBuffer word_{sizeof(std::uint32_t)};
  void* device_address_ = nullptr;
  void* wait_value_ = nullptr;  // the driver's function; null = the kernel is used
};

}  // namespace memwall
