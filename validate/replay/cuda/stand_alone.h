// The time of one kernel on an otherwise idle device, measured as in a schedule: between two events around it, with
// the stream busy before, so that the call is not part of it.
#pragma once

#include <deque>
#include <functional>

#include "validate/replay/cuda/cuda_handles.h"
#include "validate/replay/cuda/stream_counter.h"

namespace memwall {

class StandAlone {
 public:
  // Median seconds of `queue_kernel`, which puts `launches` launches on the stream it is given and waits for nothing:
  // of kSamples, after a warm-up that also loads the kernels. Throws CudaError.
  double median_seconds(std::uint64_t launches, const std::function<void(cudaStream_t)>& queue_kernel);

 private:
  static constexpr std::uint32_t kSamples = 9, kWarmUps = 3;
  // Launches queued behind a held stream: at about 1,020 the call waits for a place, and for ever.
  static constexpr std::uint32_t kMostHeld = 400;

  struct Sample {
    CudaEvent start, end;
  };
  void hold();
  void release();

  CudaStream stream_;
  StreamCounter counter_;
  std::uint32_t held_ = 0;
  std::deque<Sample> samples_;
};

}  // namespace memwall
