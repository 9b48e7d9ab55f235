// Memory-bound kernels of a training step, written as frameworks write them: 16 bytes per access, each value read and
// written once. One operand set holds inputs and outputs of one launch.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "validate/bench/cuda/device_check.h"
#include "validate/bench/kernel_cases.h"

namespace memwall {

// Device memory of one launch, each part aligned to 256 bytes.
struct StreamingOperands {
  std::byte* first = nullptr;   // x; optimizer: parameter
  std::byte* second = nullptr;  // y; reduction: sums; optimizer: gradient
  std::byte* third = nullptr;   // normalization: weight, then bias; optimizer: first moment
  std::byte* fourth = nullptr;  // normalization: mean and reciprocal deviation; optimizer: second moment
};

// What a set takes, and its parts laid out from `memory` on. REQUIRES: memory is aligned to 256 bytes.
std::size_t streaming_set_bytes(const StreamingCase& c);
StreamingOperands streaming_operands(const StreamingCase& c, std::byte* memory);

// All three queue and return. Throw CudaError.
// Random inputs, outputs poisoned with a NaN.
void fill_streaming(const StreamingCase& c, const StreamingOperands& operands, std::uint64_t seed, cudaStream_t stream);
void launch_streaming(const StreamingCase& c, const StreamingOperands& operands, cudaStream_t stream);
// Compares sampled rows with the same in double precision. REQUIRES: exactly one launch since fill_streaming.
void check_streaming(const StreamingCase& c, const StreamingOperands& operands, std::uint64_t seed, DeviceTally* tally,
                     cudaStream_t stream);

}  // namespace memwall
