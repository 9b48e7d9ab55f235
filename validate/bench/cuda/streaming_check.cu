// Operands of the memory-bound kernels: layout, random contents, and the same results in double precision.
#include <cuda_bf16.h>

#include <algorithm>
#include <array>

#include "validate/bench/cuda/streaming_kernels.h"

namespace memwall {
namespace {

constexpr unsigned kThreadsStreamingCheck = 256;
constexpr unsigned kSampledRows = 64;

// Bytes of the four parts of a set.
std::array<std::size_t, 4> part_bytes(const StreamingCase& c) {
  const auto elements = static_cast<std::size_t>(c.elements()), rows = static_cast<std::size_t>(c.rows);
  const auto columns = static_cast<std::size_t>(c.columns);
  switch (c.kernel) {
    case StreamingKernel::normalization:
      return {elements * 2, elements * 2, columns * 4, rows * 8};
    case StreamingKernel::softmax:
    case StreamingKernel::elementwise:
      return {elements * 2, elements * 2, 0, 0};
    case StreamingKernel::reduction:
      return {elements * 2, rows * 4, 0, 0};
    case StreamingKernel::optimizer:
      return {elements * 4, elements * 4, elements * 4, elements * 4};
  }
  return {};
}

std::size_t aligned(std::size_t bytes) { return (bytes + 255) / 256 * 256; }

template <class T>
__global__ void fill_random(T* data, std::int64_t count, std::uint64_t seed, float scale, float offset) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step)
    data[i] = T(random_value(seed, static_cast<std::uint64_t>(i)) * scale + offset);
}

template <class T>
void fill(std::byte* data, std::int64_t count, std::uint64_t seed, float scale, float offset, cudaStream_t stream) {
  const std::int64_t blocks =
      std::min<std::int64_t>((count + kThreadsStreamingCheck - 1) / kThreadsStreamingCheck, 65536);
  fill_random<<<static_cast<unsigned>(blocks), kThreadsStreamingCheck, 0, stream>>>(reinterpret_cast<T*>(data), count,
                                                                                    seed, scale, offset);
  check(cudaGetLastError(), "launch of the kernel that fills inputs");
}

// What the optimizer's four values were before the launch.
__device__ double adam_input(std::uint64_t seed, int part, std::int64_t i) {
  const float value = random_value(seed + part, static_cast<std::uint64_t>(i));
  return part == 3 ? value * 0.5f + 0.5f : value;  // a mean of squares is not negative
}

__device__ double number(const __nv_bfloat16* data, std::int64_t i) {
  return static_cast<double>(__bfloat162float(data[i]));
}

__device__ double sum_over_block(double value) {
  __shared__ double all[kThreadsStreamingCheck];
  __syncthreads();
  all[threadIdx.x] = value;
  __syncthreads();
  for (unsigned half = kThreadsStreamingCheck / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) all[threadIdx.x] += all[threadIdx.x + half];
    __syncthreads();
  }
  return all[0];
}

// First and last row, and some between.
__device__ std::int64_t sampled_row(std::int64_t rows) {
  if (blockIdx.x == 0) return 0;
  if (blockIdx.x == 1) return rows - 1;
  return static_cast<std::int64_t>(pattern_word(7, blockIdx.x) % static_cast<std::uint64_t>(rows));
}

// bf16 has 8 bits; fp32 arithmetic adds less than that.
__device__ double allowed_for_bf16(double expected) { return fabs(expected) / 128 + 1e-6; }

__global__ void check_normalization(StreamingCase c, StreamingOperands o, DeviceTally* tally) {
  const auto* x = reinterpret_cast<const __nv_bfloat16*>(o.first);
  const auto* y = reinterpret_cast<const __nv_bfloat16*>(o.second);
  const auto* weight = reinterpret_cast<const __nv_bfloat16*>(o.third);
  const auto* statistics = reinterpret_cast<const float2*>(o.fourth);
  const std::int64_t row = sampled_row(c.rows), first = row * c.columns;
  double sum = 0, squares = 0;
  for (std::int64_t i = threadIdx.x; i < c.columns; i += kThreadsStreamingCheck) sum += number(x, first + i);
  const double mean = sum_over_block(sum) / static_cast<double>(c.columns);
  for (std::int64_t i = threadIdx.x; i < c.columns; i += kThreadsStreamingCheck) {
    const double difference = number(x, first + i) - mean;
    squares += difference * difference;
  }
  const double scale = 1 / sqrt(sum_over_block(squares) / static_cast<double>(c.columns) + 1e-5);
  for (std::int64_t i = threadIdx.x; i < c.columns; i += kThreadsStreamingCheck) {
    const double product = (number(x, first + i) - mean) * scale * number(weight, i);
    const double expected = product + number(weight, c.columns + i);
    // Where product and bias cancel, their fp32 rounding remains.
    note_value(tally, first + i, number(y, first + i), expected, allowed_for_bf16(expected) + fabs(product) * 1e-5);
  }
  if (threadIdx.x == 0) {
    note_value(tally, row, statistics[row].x, mean, 1e-5);
    note_value(tally, row, statistics[row].y, scale, 1e-4 * scale);
  }
}

__global__ void check_softmax(StreamingCase c, StreamingOperands o, DeviceTally* tally) {
  const auto* x = reinterpret_cast<const __nv_bfloat16*>(o.first);
  const auto* y = reinterpret_cast<const __nv_bfloat16*>(o.second);
  const std::int64_t first = sampled_row(c.rows) * c.columns;
  double sum = 0;
  for (std::int64_t i = threadIdx.x; i < c.columns; i += kThreadsStreamingCheck) sum += exp(number(x, first + i));
  sum = sum_over_block(sum);
  for (std::int64_t i = threadIdx.x; i < c.columns; i += kThreadsStreamingCheck) {
    const double expected = exp(number(x, first + i)) / sum;
    note_value(tally, first + i, number(y, first + i), expected, expected / 128);
  }
}

__global__ void check_elementwise(StreamingCase c, StreamingOperands o, DeviceTally* tally) {
  const auto* x = reinterpret_cast<const __nv_bfloat16*>(o.first);
  const auto* y = reinterpret_cast<const __nv_bfloat16*>(o.second);
  const std::int64_t first = sampled_row(c.rows) * c.columns;
  for (std::int64_t i = threadIdx.x; i < c.columns; i += kThreadsStreamingCheck) {
    const double v = number(x, first + i);
    const double expected = 0.5 * v * (1 + tanh(0.7978845608028654 * (v + 0.044715 * v * v * v)));
    note_value(tally, first + i, number(y, first + i), expected, allowed_for_bf16(expected));
  }
}

__global__ void check_reduction(StreamingCase c, StreamingOperands o, DeviceTally* tally) {
  const auto* x = reinterpret_cast<const __nv_bfloat16*>(o.first);
  const auto* sums = reinterpret_cast<const float*>(o.second);
  const std::int64_t row = sampled_row(c.rows);
  double sum = 0;
  for (std::int64_t i = threadIdx.x; i < c.columns; i += kThreadsStreamingCheck) sum += number(x, row * c.columns + i);
  sum = sum_over_block(sum);
  if (threadIdx.x == 0) note_value(tally, row, sums[row], sum, 1e-3);  // partial sums of some tens, in fp32
}

__global__ void check_optimizer(StreamingCase c, StreamingOperands o, std::uint64_t seed, DeviceTally* tally) {
  const std::int64_t first = sampled_row(c.rows) * c.columns;
  const double correction1 = 1 - pow(0.9, 10.0), correction2 = 1 - pow(0.999, 10.0);
  for (std::int64_t i = first + threadIdx.x; i < first + c.columns; i += kThreadsStreamingCheck) {
    const double g = adam_input(seed, 1, i);
    const double m = 0.9 * adam_input(seed, 2, i) + 0.1 * g;
    const double v = 0.999 * adam_input(seed, 3, i) + 0.001 * g * g;
    const double update = 1e-3 * (m / correction1) / (sqrt(v / correction2) + 1e-8);
    // 1 - 0.999 has few digits left in fp32.
    note_value(tally, i, reinterpret_cast<const float*>(o.first)[i], adam_input(seed, 0, i) - update,
               1e-6 + fabs(update) * 1e-4);
    note_value(tally, i, reinterpret_cast<const float*>(o.third)[i], m, 1e-6);
    note_value(tally, i, reinterpret_cast<const float*>(o.fourth)[i], v, 1e-6);
  }
}

}  // namespace

std::size_t streaming_set_bytes(const StreamingCase& c) {
  std::size_t bytes = 0;
  for (const std::size_t part : part_bytes(c)) bytes += aligned(part);
  return bytes;
}

StreamingOperands streaming_operands(const StreamingCase& c, std::byte* memory) {
  const auto bytes = part_bytes(c);
  StreamingOperands operands;
  std::byte** parts[] = {&operands.first, &operands.second, &operands.third, &operands.fourth};
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    *parts[i] = memory;
    memory += aligned(bytes[i]);
  }
  return operands;
}

void fill_streaming(const StreamingCase& c, const StreamingOperands& o, std::uint64_t seed, cudaStream_t stream) {
  const auto bytes = part_bytes(c);
  if (c.kernel == StreamingKernel::optimizer) {
    fill<float>(o.first, c.elements(), seed, 1, 0, stream);
    fill<float>(o.second, c.elements(), seed + 1, 1, 0, stream);
    fill<float>(o.third, c.elements(), seed + 2, 1, 0, stream);
    fill<float>(o.fourth, c.elements(), seed + 3, 0.5f, 0.5f, stream);
    return;
  }
  fill<__nv_bfloat16>(o.first, c.elements(), seed, 1, 0, stream);
  check(cudaMemsetAsync(o.second, 0xff, bytes[1], stream), "cudaMemsetAsync");
  if (c.kernel != StreamingKernel::normalization) return;
  fill<__nv_bfloat16>(o.third, 2 * c.columns, seed + 2, 1, 0, stream);
  check(cudaMemsetAsync(o.fourth, 0xff, bytes[3], stream), "cudaMemsetAsync");
}

void check_streaming(const StreamingCase& c, const StreamingOperands& o, std::uint64_t seed, DeviceTally* tally,
                     cudaStream_t stream) {
  switch (c.kernel) {
    case StreamingKernel::normalization:
      check_normalization<<<kSampledRows, kThreadsStreamingCheck, 0, stream>>>(c, o, tally);
      break;
    case StreamingKernel::softmax:
      check_softmax<<<kSampledRows, kThreadsStreamingCheck, 0, stream>>>(c, o, tally);
      break;
    case StreamingKernel::elementwise:
      check_elementwise<<<kSampledRows, kThreadsStreamingCheck, 0, stream>>>(c, o, tally);
      break;
    case StreamingKernel::reduction:
      check_reduction<<<kSampledRows, kThreadsStreamingCheck, 0, stream>>>(c, o, tally);
      break;
    case StreamingKernel::optimizer:
      check_optimizer<<<kSampledRows, kThreadsStreamingCheck, 0, stream>>>(c, o, seed, tally);
      break;
  }
  check(cudaGetLastError(), "launch of the kernel that checks a result");
}

}  // namespace memwall
