// Two things at once on a device: one is timed while the other keeps it busy from before to after.
#pragma once

#include <functional>

#include "validate/bench/cuda/cuda_timing.h"

namespace memwall {

// Work of one kind that a stream is given.
struct Contender {
  std::function<void(cudaStream_t)> submit;  // one operation; waits for nothing
  double seconds = 0;                        // that one takes alone: how many are needed is concluded from it
};

class Contention {
 public:
  // Fills `seconds` of `contender` by running it alone.
  void time_alone(Contender& contender);

  // Seconds per operation of `operations` that nothing disturbs. REQUIRES: operations <= kMostQueued.
  double seconds_alone(const Contender& contender, unsigned operations);

  // Seconds per operation of `operations` of `timed` that begin after `busy` has begun, and end before it ends:
  // that is checked with events, and more of `busy` is queued until it is so. Throws std::runtime_error where
  // that would take more than kMostQueued operations. REQUIRES: both were timed alone, operations <= 100.
  double seconds_per_operation(const Contender& timed, unsigned operations, const Contender& busy);

 private:
  CudaTiming timing_;
  CudaStream timed_stream_, busy_stream_;
  CudaEvent first_{false}, busy_end_;
};

}  // namespace memwall
