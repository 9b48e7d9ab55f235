// Kernels that stream through device memory as fast as it goes: read, write, and triad (a = b + s * c).
//
// Each goes over its elements `passes` times in one launch, so that what a launch costs does not hide the
// bandwidth of a small working set. 16 bytes an access, several in flight per thread; the first-level cache is
// bypassed, so that small sets tell the second level's bandwidth.
#pragma once

#include <cstddef>
#include <cstdint>

#include "validate/bench/cuda/cuda_buffers.h"

namespace memwall {

// All REQUIRE: `bytes` is a power of two and at least 16; `bytes` is that of one array.

// Adds the sum of all 32-bit words, once per pass, to *sum.
void launch_stream_read(const void* data, std::size_t bytes, unsigned passes, unsigned long long* sum,
                        cudaStream_t stream);
// Writes words that follow from place and `tag`.
void launch_stream_write(void* data, std::size_t bytes, unsigned passes, std::uint32_t tag, cudaStream_t stream);
// to = b + kTriadScale * c
void launch_stream_triad(float* to, const float* b, const float* c, std::size_t bytes, unsigned passes,
                         cudaStream_t stream);
inline constexpr float kTriadScale = 0.75f;

// The same, computed plainly, for comparison. They wait for the device.
std::uint64_t plain_sum(const void* data, std::size_t bytes);
std::uint64_t wrong_after_write(const void* data, std::size_t bytes, std::uint32_t tag);  // 16-byte elements
std::uint64_t wrong_after_triad(const float* to, const float* b, const float* c, std::size_t bytes);

}  // namespace memwall
