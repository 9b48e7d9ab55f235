// How long a kernel takes when it is queued between others of its kind: the period of a queue behind a held stream,
// less the gap between queued kernels (device_timestamps.h), which the simulator adds by itself.
#pragma once

#include <functional>
#include <string>

#include "validate/bench/benchmark.h"
#include "validate/bench/cuda/cuda_timing.h"
#include "validate/bench/cuda/device_timestamps.h"

namespace memwall {

class KernelSampler {
 public:
  KernelSampler();  // measures the gap
  cudaStream_t stream() const { return stream_.get(); }

  // `launch` queues the kernel in stream(). Fills median, low, high, samples and note; a kernel that takes no longer
  // than the gap makes the row failed. Throws CudaError, std::runtime_error.
  void sample(const BenchmarkRun& run, Measurement& m, const std::function<void()>& launch);

 private:
  CudaStream stream_;
  CudaTiming timing_;
  double gap_;
};

// Bytes of the L2 cache of the current device.
double l2_bytes();

// Makes `m` failed with `verdict` as its note, unless that is "".
void note_verdict(Measurement& m, const std::string& verdict);

}  // namespace memwall
