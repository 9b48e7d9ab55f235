#include <cuda_bf16.h>

#include <algorithm>

#include "validate/bench/cuda/streaming_kernels.h"

namespace memwall {
namespace {

constexpr unsigned kThreadsStreamingKernels = 256;
constexpr unsigned kRowThreads = 256;  // of kernels that take a row per block
constexpr float kEpsilon = 1e-5f;      // of layer norm
// Adam, step 10: bias corrections are 1 - 0.9^10 and 1 - 0.999^10.
constexpr float kRate = 1e-3f, kBeta1 = 0.9f, kBeta2 = 0.999f, kAdamEpsilon = 1e-8f;
constexpr float kCorrection1 = 0.6513215599f, kCorrection2 = 0.0099551197f;
constexpr float kGelu = 0.7978845608f, kGeluCubic = 0.044715f;

// Eight bf16 values, moved as 16 bytes.
struct alignas(16) Bf16x8 {
  __nv_bfloat16 value[8];
};

__device__ float4 operator*(float4 a, float b) { return {a.x * b, a.y * b, a.z * b, a.w * b}; }
__device__ float4 operator+(float4 a, float4 b) { return {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w}; }

// Combines one value per thread of a block of kRowThreads; every thread gets the result.
template <class Combine>
__device__ float over_block(float value, Combine combine) {
  __shared__ float of_warp[kRowThreads / 32];
  for (int offset = 16; offset > 0; offset /= 2) value = combine(value, __shfl_xor_sync(0xffffffffu, value, offset));
  __syncthreads();  // of_warp may still be read from the call before
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = value;
  __syncthreads();
  float all = of_warp[0];
  for (unsigned warp = 1; warp < kRowThreads / 32; ++warp) all = combine(all, of_warp[warp]);
  return all;
}

__device__ float sum_over_block(float value) {
  return over_block(value, [](float a, float b) { return a + b; });
}

// A block per row of kRowThreads * kVectors * 8 elements, kept in registers.
template <int kVectors>
struct RowInRegisters {
  float value[kVectors * 8];

  __device__ void read(const Bf16x8* row) {
    for (int v = 0; v < kVectors; ++v) {
      const Bf16x8 in = row[v * kRowThreads + threadIdx.x];
      for (int i = 0; i < 8; ++i) value[v * 8 + i] = __bfloat162float(in.value[i]);
    }
  }
  __device__ void write(Bf16x8* row) const {
    for (int v = 0; v < kVectors; ++v) {
      Bf16x8 out;
      for (int i = 0; i < 8; ++i) out.value[i] = __float2bfloat16(value[v * 8 + i]);
      row[v * kRowThreads + threadIdx.x] = out;
    }
  }
};

__global__ void __launch_bounds__(kRowThreads)
    normalize_rows(const Bf16x8* x, Bf16x8* y, const Bf16x8* weight_bias, float2* statistics) {
  constexpr int kVectors = 2, kElements = kRowThreads * kVectors * 8;
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * kRowThreads * kVectors;
  RowInRegisters<kVectors> row, weight, bias;
  row.read(x + first);
  weight.read(weight_bias);
  bias.read(weight_bias + kRowThreads * kVectors);
  float sum = 0;
  for (const float v : row.value) sum += v;
  const float mean = sum_over_block(sum) / kElements;
  float squares = 0;
  for (const float v : row.value) squares += (v - mean) * (v - mean);
  const float scale = rsqrtf(sum_over_block(squares) / kElements + kEpsilon);
  for (int i = 0; i < kVectors * 8; ++i) row.value[i] = (row.value[i] - mean) * scale * weight.value[i] + bias.value[i];
  row.write(y + first);
  if (threadIdx.x == 0) statistics[blockIdx.x] = {mean, scale};
}

__global__ void __launch_bounds__(kRowThreads) softmax_rows(const Bf16x8* x, Bf16x8* y) {
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * kRowThreads;
  RowInRegisters<1> row;
  row.read(x + first);
  float largest = row.value[0];
  for (const float v : row.value) largest = fmaxf(largest, v);
  largest = over_block(largest, [](float a, float b) { return fmaxf(a, b); });
  float sum = 0;
  for (float& v : row.value) sum += v = __expf(v - largest);
  const float scale = 1 / sum_over_block(sum);
  for (float& v : row.value) v *= scale;
  row.write(y + first);
}

__global__ void __launch_bounds__(kRowThreads) sum_rows(const Bf16x8* x, float* sums) {
  RowInRegisters<2> row;
  row.read(x + static_cast<std::int64_t>(blockIdx.x) * kRowThreads * 2);
  float sum = 0;
  for (const float v : row.value) sum += v;
  sum = sum_over_block(sum);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

__global__ void __launch_bounds__(kThreadsStreamingKernels) gelu(const Bf16x8* x, Bf16x8* y, std::int64_t vectors) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreadsStreamingKernels + threadIdx.x;
  if (i >= vectors) return;
  Bf16x8 data = x[i];
  for (__nv_bfloat16& element : data.value) {
    const float v = __bfloat162float(element);
    element = __float2bfloat16(0.5f * v * (1 + tanhf(kGelu * (v + kGeluCubic * v * v * v))));
  }
  y[i] = data;
}

__device__ float adam_step(float moment1, float moment2) {
  return kRate * (moment1 / kCorrection1) / (sqrtf(moment2 / kCorrection2) + kAdamEpsilon);
}

__global__ void __launch_bounds__(kThreadsStreamingKernels)
    adam(float4* parameter, const float4* gradient, float4* moment1, float4* moment2, std::int64_t vectors) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreadsStreamingKernels + threadIdx.x;
  if (i >= vectors) return;
  const float4 g = gradient[i];
  const float4 squared = {g.x * g.x, g.y * g.y, g.z * g.z, g.w * g.w};
  const float4 m = moment1[i] * kBeta1 + g * (1 - kBeta1);
  const float4 v = moment2[i] * kBeta2 + squared * (1 - kBeta2);
  float4 p = parameter[i];
  p.x -= adam_step(m.x, v.x);
  p.y -= adam_step(m.y, v.y);
  p.z -= adam_step(m.z, v.z);
  p.w -= adam_step(m.w, v.w);
  parameter[i] = p;
  moment1[i] = m;
  moment2[i] = v;
}

unsigned blocks_for(std::int64_t items) {
  return static_cast<unsigned>((items + kThreadsStreamingKernels - 1) / kThreadsStreamingKernels);
}

template <class T>
T* as(std::byte* memory) {
  return reinterpret_cast<T*>(memory);
}

}  // namespace

void launch_streaming(const StreamingCase& c, const StreamingOperands& o, cudaStream_t stream) {
  const auto rows = static_cast<unsigned>(c.rows);
  const std::int64_t halves = c.elements() / 8, singles = c.elements() / 4;  // vectors of bf16, of fp32
  auto* x = as<const Bf16x8>(o.first);
  auto* y = as<Bf16x8>(o.second);
  switch (c.kernel) {
    case StreamingKernel::normalization:
      normalize_rows<<<rows, kRowThreads, 0, stream>>>(x, y, as<const Bf16x8>(o.third), as<float2>(o.fourth));
      break;
    case StreamingKernel::softmax:
      softmax_rows<<<rows, kRowThreads, 0, stream>>>(x, y);
      break;
    case StreamingKernel::elementwise:
      gelu<<<blocks_for(halves), kThreadsStreamingKernels, 0, stream>>>(x, y, halves);
      break;
    case StreamingKernel::reduction:
      sum_rows<<<rows, kRowThreads, 0, stream>>>(x, as<float>(o.second));
      break;
    case StreamingKernel::optimizer:
      adam<<<blocks_for(singles), kThreadsStreamingKernels, 0, stream>>>(
          as<float4>(o.first), as<const float4>(o.second), as<float4>(o.third), as<float4>(o.fourth), singles);
      break;
  }
  check(cudaGetLastError(), "launch of a memory-bound kernel");
}

}  // namespace memwall
