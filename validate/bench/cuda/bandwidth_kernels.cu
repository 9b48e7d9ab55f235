#include <algorithm>

#include "validate/bench/cuda/bandwidth_kernels.h"
#include "validate/bench/cuda/cuda_device.h"

namespace memwall {
namespace {

constexpr unsigned kThreadsBandwidthKernels = 512;
constexpr unsigned kInFlight = 4;  // accesses per thread

// Volatile: neither dropped nor moved out of the loop over passes. cg: not from the first-level cache.
__device__ uint4 load(const uint4* from) {
  uint4 v;
  asm volatile("ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(from));
  return v;
}
__device__ void store(uint4* to, uint4 v) {
  asm volatile("st.global.cg.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w)
               : "memory");
}

__device__ std::size_t thread_number() { return std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; }
__device__ std::size_t thread_count() { return std::size_t{gridDim.x} * blockDim.x; }

__device__ unsigned long long word_sum(uint4 v) { return static_cast<unsigned long long>(v.x) + v.y + v.z + v.w; }

__device__ uint4 written(std::size_t index, std::uint32_t tag) {
  const std::uint32_t mixed = (static_cast<std::uint32_t>(index) * 0x9e3779b1u) ^ tag;
  return {mixed, ~mixed, mixed + tag, mixed ^ 0x5bd1e995u};
}

__device__ float triad(float b, float c) { return fmaf(kTriadScale, c, b); }
__device__ uint4 triad(uint4 b, uint4 c) {
  return {__float_as_uint(triad(__uint_as_float(b.x), __uint_as_float(c.x))),
          __float_as_uint(triad(__uint_as_float(b.y), __uint_as_float(c.y))),
          __float_as_uint(triad(__uint_as_float(b.z), __uint_as_float(c.z))),
          __float_as_uint(triad(__uint_as_float(b.w), __uint_as_float(c.w)))};
}

// One atomic per block: many would be what is timed.
__device__ void add_of_block(unsigned long long value, unsigned long long* sum) {
  __shared__ unsigned long long of_block;
  if (threadIdx.x == 0) of_block = 0;
  __syncthreads();
  atomicAdd(&of_block, value);
  __syncthreads();
  if (threadIdx.x == 0 && of_block != 0) atomicAdd(sum, of_block);
}

// `count` is a power of two. The passes lie one behind the other in one loop, so that the threads are all
// busy even where one pass has fewer elements than there are threads.
__global__ void __launch_bounds__(kThreadsBandwidthKernels)
    stream_read(const uint4* data, std::size_t count, unsigned passes, unsigned long long* sum) {
  const std::size_t total = count * passes, stride = thread_count(), mask = count - 1;
  unsigned long long value = 0;
  std::size_t i = thread_number();
  for (; i + (kInFlight - 1) * stride < total; i += kInFlight * stride) {
    uint4 v[kInFlight];
#pragma unroll
    for (unsigned k = 0; k < kInFlight; ++k) v[k] = load(data + ((i + k * stride) & mask));
#pragma unroll
    for (unsigned k = 0; k < kInFlight; ++k) value += word_sum(v[k]);
  }
  for (; i < total; i += stride) value += word_sum(load(data + (i & mask)));
  add_of_block(value, sum);
}

__global__ void __launch_bounds__(kThreadsBandwidthKernels)
    stream_write(uint4* data, std::size_t count, unsigned passes, std::uint32_t tag) {
  const std::size_t total = count * passes, stride = thread_count(), mask = count - 1;
#pragma unroll 4
  for (std::size_t i = thread_number(); i < total; i += stride) store(data + (i & mask), written(i & mask, tag));
}

__global__ void __launch_bounds__(kThreadsBandwidthKernels)
    stream_triad(uint4* to, const uint4* b, const uint4* c, std::size_t count, unsigned passes) {
  const std::size_t total = count * passes, stride = thread_count(), mask = count - 1;
  std::size_t i = thread_number();
  for (; i + stride < total; i += 2 * stride) {
    const std::size_t first = i & mask, second = (i + stride) & mask;
    const uint4 b1 = load(b + first), c1 = load(c + first), b2 = load(b + second), c2 = load(c + second);
    store(to + first, triad(b1, c1));
    store(to + second, triad(b2, c2));
  }
  for (; i < total; i += stride) store(to + (i & mask), triad(load(b + (i & mask)), load(c + (i & mask))));
}

__global__ void sum_plainly(const std::uint32_t* words, std::size_t count, unsigned long long* sum) {
  unsigned long long value = 0;
  for (std::size_t i = thread_number(); i < count; i += thread_count()) value += words[i];
  atomicAdd(sum, value);
}

__global__ void compare_written(const uint4* data, std::size_t count, std::uint32_t tag, unsigned long long* wrong) {
  unsigned long long found = 0;
  for (std::size_t i = thread_number(); i < count; i += thread_count()) {
    const uint4 is = data[i], expected = written(i, tag);
    found += is.x != expected.x || is.y != expected.y || is.z != expected.z || is.w != expected.w;
  }
  if (found != 0) atomicAdd(wrong, found);
}

__global__ void compare_triad(const float* to, const float* b, const float* c, std::size_t count,
                              unsigned long long* wrong) {
  unsigned long long found = 0;
  for (std::size_t i = thread_number(); i < count; i += thread_count()) found += to[i] != triad(b[i], c[i]);
  if (found != 0) atomicAdd(wrong, found);
}

// As many blocks as run at once: a loop that is shared out evenly must not have a second wave.
template <typename Kernel>
unsigned blocks_of(Kernel kernel) {
  int per_multiprocessor = 0;
  check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_multiprocessor, kernel, kThreadsBandwidthKernels, 0),
        "cudaOccupancyMaxActiveBlocksPerMultiprocessor");
  return multiprocessors() * static_cast<unsigned>(std::max(per_multiprocessor, 1));
}

}  // namespace

void launch_stream_read(const void* data, std::size_t bytes, unsigned passes, unsigned long long* sum,
                        cudaStream_t stream) {
  stream_read<<<blocks_of(stream_read), kThreadsBandwidthKernels, 0, stream>>>(static_cast<const uint4*>(data),
                                                                               bytes / sizeof(uint4), passes, sum);
  check(cudaGetLastError(), "launch of the reading kernel");
}

void launch_stream_write(void* data, std::size_t bytes, unsigned passes, std::uint32_t tag, cudaStream_t stream) {
  stream_write<<<blocks_of(stream_write), kThreadsBandwidthKernels, 0, stream>>>(static_cast<uint4*>(data),
                                                                                 bytes / sizeof(uint4), passes, tag);
  check(cudaGetLastError(), "launch of the writing kernel");
}

void launch_stream_triad(float* to, const float* b, const float* c, std::size_t bytes, unsigned passes,
                         cudaStream_t stream) {
  stream_triad<<<blocks_of(stream_triad), kThreadsBandwidthKernels, 0, stream>>>(
      reinterpret_cast<uint4*>(to), reinterpret_cast<const uint4*>(b), reinterpret_cast<const uint4*>(c),
      bytes / sizeof(uint4), passes);
  check(cudaGetLastError(), "launch of the triad kernel");
}

std::uint64_t plain_sum(const void* data, std::size_t bytes) {
  const DeviceCounter sum;
  sum_plainly<<<blocks_of(sum_plainly), kThreadsBandwidthKernels>>>(static_cast<const std::uint32_t*>(data),
                                                                    bytes / sizeof(std::uint32_t), sum.get());
  check(cudaGetLastError(), "launch of the kernel that adds plainly");
  return sum.value();
}

std::uint64_t wrong_after_write(const void* data, std::size_t bytes, std::uint32_t tag) {
  const DeviceCounter wrong;
  compare_written<<<blocks_of(compare_written), kThreadsBandwidthKernels>>>(static_cast<const uint4*>(data),
                                                                            bytes / sizeof(uint4), tag, wrong.get());
  check(cudaGetLastError(), "launch of the kernel that compares what was written");
  return wrong.value();
}

std::uint64_t wrong_after_triad(const float* to, const float* b, const float* c, std::size_t bytes) {
  const DeviceCounter wrong;
  compare_triad<<<blocks_of(compare_triad), kThreadsBandwidthKernels>>>(to, b, c, bytes / sizeof(float), wrong.get());
  check(cudaGetLastError(), "launch of the kernel that compares a triad");
  return wrong.value();
}

}  // namespace memwall
