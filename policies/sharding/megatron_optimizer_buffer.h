// How Megatron-LM's distributed optimizer lays gradients (and parameters) out in one buffer, and cuts it into buckets.
//
// Parameters stand in reverse order, each from a multiple of 64 elements on. With overlapped reductions a bucket closes
// once it has `bucket_size` elements; a bucket ends at a multiple of lcm(ranks, 128), with padding for high bus
// bandwidth of lcm(ranks, 128, 65536). Rank r owns the r-th part of each bucket, across the borders of parameters.
// Source: NVIDIA/Megatron-LM, megatron/core/distributed/param_and_grad_buffer.py.
#pragma once

#include <cstdint>
#include <vector>

namespace memwall {

struct MegatronBucket {
  std::int64_t begin = 0, end = 0;      // elements of the buffer
  std::vector<std::size_t> parameters;  // by their numbers in registration order, as they are laid out
};

// `elements`: of each parameter, in registration order; `bucket_size`: 0 = one bucket. REQUIRES: ranks >= 1.
std::vector<MegatronBucket> megatron_buckets(const std::vector<std::int64_t>& elements, std::uint32_t ranks,
                                             std::int64_t bucket_size, bool high_bandwidth);

}  // namespace memwall
