#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <stdexcept>
#include <string>

#include "validate/bench/cuda/gemm_data.h"

namespace memwall {
namespace {

constexpr unsigned kThreadsGemmData = 256;

template <class T>
__global__ void fill_random(T* data, std::int64_t count, std::uint64_t seed) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step)
    data[i] = T(random_value(seed, static_cast<std::uint64_t>(i)));
}

template <class T>
__device__ double widen(T value) {
  return static_cast<double>(static_cast<float>(value));
}

// The first four samples are the corners of D, the others are spread by a hash.
__device__ std::int64_t sampled(unsigned sample, std::int64_t size, std::uint64_t salt) {
  if (sample < 4) return (sample >> (salt & 1)) % 2 == 0 ? 0 : size - 1;
  return static_cast<std::int64_t>(pattern_word(salt, sample) % static_cast<std::uint64_t>(size));
}

// One block per sampled element.
template <class In, class Out>
__global__ void check_samples(MatmulShape shape, const In* a, const In* b, const Out* d, GemmTolerance tolerance,
                              DeviceTally* tally) {
  __shared__ double partial[kThreadsGemmData];
  const std::int64_t row = sampled(blockIdx.x, shape.m, 2), column = sampled(blockIdx.x, shape.n, 3);
  double sum = 0;
  for (std::int64_t i = threadIdx.x; i < shape.k; i += kThreadsGemmData)
    sum += widen(a[row * shape.k + i]) * widen(b[column * shape.k + i]);
  partial[threadIdx.x] = sum;
  __syncthreads();
  for (unsigned half = kThreadsGemmData / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x != 0) return;
  const double exact = partial[0];
  const double allowed = tolerance.relative * fabs(exact) + tolerance.per_root_k * sqrt(static_cast<double>(shape.k));
  const std::int64_t index = row * shape.n + column;
  note_value(tally, static_cast<std::uint64_t>(index), widen(d[index]), exact, allowed);
}

template <class T>
void fill(void* data, std::int64_t count, std::uint64_t seed, cudaStream_t stream) {
  const std::int64_t blocks = (count + kThreadsGemmData - 1) / kThreadsGemmData;
  fill_random<<<static_cast<unsigned>(blocks < 65536 ? blocks : 65536), kThreadsGemmData, 0, stream>>>(
      static_cast<T*>(data), count, seed);
  check(cudaGetLastError(), "launch of the kernel that fills inputs");
}

template <class In, class Out>
void compare(const MatmulShape& shape, const void* a, const void* b, const void* d, GemmTolerance tolerance,
             DeviceTally* tally, cudaStream_t stream) {
  check_samples<<<kGemmSamples, kThreadsGemmData, 0, stream>>>(
      shape, static_cast<const In*>(a), static_cast<const In*>(b), static_cast<const Out*>(d), tolerance, tally);
  check(cudaGetLastError(), "launch of the kernel that checks a product");
}

[[noreturn]] void refuse(DataType data_type) {
  throw std::runtime_error("No matrix product is measured for the data type " + std::string(to_string(data_type)) +
                           ".");
}

}  // namespace

void fill_gemm_input(DataType data_type, void* data, std::int64_t count, std::uint64_t seed, cudaStream_t stream) {
  switch (data_type) {
    case DataType::bf16:
      return fill<__nv_bfloat16>(data, count, seed, stream);
    case DataType::fp16:
      return fill<__half>(data, count, seed, stream);
    case DataType::tf32:
    case DataType::fp32:
      return fill<float>(data, count, seed, stream);
    case DataType::fp8:
      return fill<__nv_fp8_e4m3>(data, count, seed, stream);
    default:
      refuse(data_type);
  }
}

void check_gemm(const MatmulShape& shape, const void* a, const void* b, const void* d, GemmTolerance tolerance,
                DeviceTally* tally, cudaStream_t stream) {
  switch (shape.data_type) {
    case DataType::bf16:
      return compare<__nv_bfloat16, __nv_bfloat16>(shape, a, b, d, tolerance, tally, stream);
    case DataType::fp16:
      return compare<__half, __half>(shape, a, b, d, tolerance, tally, stream);
    case DataType::tf32:
    case DataType::fp32:
      return compare<float, float>(shape, a, b, d, tolerance, tally, stream);
    case DataType::fp8:
      return compare<__nv_fp8_e4m3, __nv_bfloat16>(shape, a, b, d, tolerance, tally, stream);
    default:
      refuse(shape.data_type);
  }
}

}  // namespace memwall
