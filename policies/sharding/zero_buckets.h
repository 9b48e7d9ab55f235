// Tensors that one collective serves.
#pragma once

#include <cstddef>
#include <vector>

#include "sim/units.h"

namespace memwall {

// When a bucket is full.
enum class BucketRule {
  // A tensor goes in, then the bucket closes if it has reached its size; the first one is small, so that
  // communication begins early. Source: pytorch/pytorch, torch/csrc/distributed/c10d/reducer.cpp,
  // compute_bucket_assignment_by_size; first bucket 1 MiB (kDefaultFirstBucketBytes).
  close_when_reached,
  // A tensor that would not fit closes the bucket first; one larger than a bucket is alone.
  // Source: deepspeedai/DeepSpeed, runtime/zero/stage_1_and_2.py, reduce_independent_p_g_buckets_and_remove_grads.
  never_exceed
};

inline constexpr Bytes kFirstBucket = MiB(1);
// Tensors of one collective: a larger bucket of tiny ones is divided.
inline constexpr std::size_t kMostTensors = 16384;

// Indices into `sizes`, in order, grouped. `first`: of the first bucket, with close_when_reached, if that is less.
// REQUIRES: limit >= 1.
std::vector<std::vector<std::size_t>> fill_buckets(const std::vector<Bytes>& sizes, Bytes limit, BucketRule rule,
                                                   Bytes first = kFirstBucket);

}  // namespace memwall
