// What ranks send, and what every rank must have after a collective. Small whole numbers, whose sums are exact in
// any order.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "validate/bench/cuda/device_check.h"
#include "validate/bench/kernel_cases.h"

namespace memwall {

// Both queue on the current device. Throw CudaError.
// All that `rank` sends; its `receive` buffer is filled with NaN. `elements` as in NcclOperands.
void fill_nccl(NcclCollective collective, float* send, float* receive, std::size_t elements, int rank, int ranks,
               cudaStream_t stream);
// Compares every element of `receive` of `rank`.
void check_nccl(NcclCollective collective, const float* receive, std::size_t elements, int rank, int ranks,
                DeviceTally* tally, cudaStream_t stream);

}  // namespace memwall
