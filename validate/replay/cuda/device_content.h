// Known contents in device memory: written, and compared, by kernels in stream order, in checked passes.
#pragma once

#include <atomic>
#include <span>

#include "validate/replay/backend.h"
#include "validate/replay/cuda/cuda_handles.h"

namespace memwall {

// May be used from several threads, but for reset and count.
class DeviceContent {
 public:
  DeviceContent();

  // Forgets what was found. REQUIRES: nothing runs.
  void reset();
  // Queues the comparison of the first `bytes` of a buffer with pattern(tag). `operand`: its number among the
  // op's, for the message. Tag 0 and buffers that are not on the device are not looked at.
  void expect(OpId id, unsigned operand, const Buffer& buffer, Bytes bytes, std::uint64_t tag, cudaStream_t stream);
  void expect_all(OpId id, std::span<const Operand> operands, cudaStream_t stream);
  // Queues the writing of what each operand on the device is to hold after the op.
  void fill_all(std::span<const Operand> operands, cudaStream_t stream) const;
  // What was found. A sentence about the first wrong word, if any. REQUIRES: nothing runs.
  IntegrityCount count() const;

 private:
  DeviceBuffer record_;
  std::atomic<std::uint64_t> checks_{0}, bytes_{0};
};

}  // namespace memwall
