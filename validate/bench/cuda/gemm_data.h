// Data of matrix products on the device: random inputs, and a check of sampled results in double precision.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "validate/bench/cuda/device_check.h"
#include "validate/bench/kernel_cases.h"
#include "validate/replay/matmul_shape.h"

namespace memwall {

inline constexpr unsigned kGemmSamples = 512;  // elements of D that are checked, corners among them

// `count` elements of A or B: uniform in (-1, 1), rounded to the data type. Queues. Throws CudaError.
void fill_gemm_input(DataType data_type, void* data, std::int64_t count, std::uint64_t seed, cudaStream_t stream);

// Compares sampled elements of D with dot products of the rounded inputs in double precision. Queues.
void check_gemm(const MatmulShape& shape, const void* a, const void* b, const void* d, GemmTolerance tolerance,
                DeviceTally* tally, cudaStream_t stream);

}  // namespace memwall
