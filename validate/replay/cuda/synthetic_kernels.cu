#include <algorithm>
#include <cmath>

#include "validate/replay/cuda/cuda_handles.h"
#include "validate/replay/cuda/synthetic_kernels.h"
#include "validate/replay/pattern.h"

namespace memwall {
namespace {

constexpr unsigned kThreads = 256;
constexpr unsigned kRowsPerStep = 4;  // in flight per thread block, and at most as many written meanwhile
constexpr std::uint64_t kRandomTag = 0x6d656d77616c6c;  // any number will do
static_assert(kRowBytes == kThreads * sizeof(uint4));

__device__ uint4* row_of(const StreamedRows& rows, std::uint32_t row) {
  std::uint32_t begin = 0;
  for (std::uint32_t i = 0; i < rows.pieces; ++i) {
    if (row < rows.piece_end[i]) return reinterpret_cast<uint4*>(rows.piece[i]) + std::size_t{row - begin} * kThreads;
    begin = rows.piece_end[i];
  }
  const std::uint32_t place = (rows.scratch_first + (row - begin)) & (rows.scratch_rows - 1);
  return reinterpret_cast<uint4*>(rows.scratch) + std::size_t{place} * kThreads;
}

// `steps`: of each thread block. `writes_per_step`: rows, at most kRowsPerStep. `chains`: multiply-adds of each
// thread and step, in fours.
__global__ void __launch_bounds__(kThreads)
    streaming(const __grid_constant__ StreamedRows read, const __grid_constant__ StreamedRows write,
              std::uint32_t steps, std::uint32_t writes_per_step, std::uint32_t chains) {
  float a = threadIdx.x, b = a + 1, c = a + 2, d = a + 3;
  uint4 seen = make_uint4(1, 2, 3, threadIdx.x);
  for (std::uint32_t i = 0; i < steps; ++i) {
    const std::uint32_t step = i * gridDim.x + blockIdx.x;
    uint4 words[kRowsPerStep];
#pragma unroll
    for (unsigned j = 0; j < kRowsPerStep; ++j) {
      const std::uint32_t row = step * kRowsPerStep + j;
      words[j] = row < read.rows ? row_of(read, row)[threadIdx.x] : make_uint4(0, 0, 0, 0);
    }
    for (std::uint32_t f = 0; f < chains; ++f) {
      a = fmaf(a, 0.999f, 0.001f);
      b = fmaf(b, 0.999f, 0.002f);
      c = fmaf(c, 0.999f, 0.003f);
      d = fmaf(d, 0.999f, 0.004f);
    }
#pragma unroll
    for (unsigned j = 0; j < kRowsPerStep; ++j) {
      seen.x ^= words[j].x;
      seen.y ^= words[j].y;
      seen.z ^= words[j].z;
      seen.w ^= words[j].w;
    }
#pragma unroll
    for (unsigned j = 0; j < kRowsPerStep; ++j) {
      const std::uint32_t row = step * writes_per_step + j;
      if (j < writes_per_step && row < write.rows) row_of(write, row)[threadIdx.x] = seen;
    }
  }
  // Never true, which the compiler cannot know: nothing above may be left out.
  if (a + b + c + d == -1.0f && (seen.x ^ seen.y ^ seen.z ^ seen.w) == 0x5ca1ab1e)
    reinterpret_cast<uint4*>(write.scratch)[threadIdx.x] = seen;
}

__device__ std::uint64_t global_thread() { return std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; }
__device__ std::uint64_t all_threads() { return std::uint64_t{gridDim.x} * blockDim.x; }

__global__ void fill(std::uint64_t* data, std::uint64_t words, unsigned tail, std::uint64_t tag) {
  for (std::uint64_t i = global_thread(); i < words; i += all_threads()) data[i] = pattern_word(tag, i);
  if (global_thread() < tail)
    reinterpret_cast<unsigned char*>(data + words)[threadIdx.x] =
        static_cast<unsigned char>(pattern_word(tag, words) >> (8 * threadIdx.x));
}

__device__ void note_wrong(ContentRecord* record, unsigned op, unsigned operand, std::uint64_t word,
                           std::uint64_t found, std::uint64_t expected) {
  atomicAdd(&record->wrong_words, 1ull);
  if (atomicCAS(&record->claimed, 0u, 1u) != 0) return;
  record->op = op;
  record->operand = operand;
  record->word = word;
  record->found = found;
  record->expected = expected;
}

__global__ void compare(const std::uint64_t* data, std::uint64_t words, unsigned tail, std::uint64_t tag, unsigned op,
                        unsigned operand, ContentRecord* record) {
  for (std::uint64_t i = global_thread(); i < words; i += all_threads()) {
    const std::uint64_t found = data[i], expected = pattern_word(tag, i);
    if (found != expected) note_wrong(record, op, operand, i, found, expected);
  }
  if (global_thread() != 0 || tail == 0) return;
  std::uint64_t found = 0;
  for (unsigned i = 0; i < tail; ++i)
    found |= std::uint64_t{reinterpret_cast<const unsigned char*>(data + words)[i]} << (8 * i);
  const std::uint64_t expected = pattern_word(tag, words) & ((std::uint64_t{1} << (8 * tail)) - 1);
  if (found != expected) note_wrong(record, op, operand, words, found, expected);
}

// Each 16 bits: a sign, an exponent of bf16 for sizes from 0.125 to 2, random digits. Bit 6 stays zero, so that no
// byte is fp8's NaN. Read as fp16 or fp32 the numbers are of that size too; as fp64 they are smaller.
__global__ void random_numbers(std::uint64_t* data, std::uint64_t words) {
  for (std::uint64_t i = global_thread(); i < words; i += all_threads())
    data[i] = (pattern_word(kRandomTag, i) & 0x81bf81bf81bf81bfull) | 0x3e003e003e003e00ull;
}

__global__ void wait_for(const volatile std::uint32_t* flag, std::uint32_t value) {
  while (static_cast<std::int32_t>(*flag - value) < 0) __nanosleep(200);
  __threadfence_system();
}

__device__ std::uint64_t nanoseconds_now() {
  std::uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

__global__ void occupy(std::uint64_t nanoseconds) {
  const std::uint64_t start = nanoseconds_now();
  while (nanoseconds_now() - start < nanoseconds) __nanosleep(200);
}

unsigned blocks_for(std::uint64_t words) {
  return static_cast<unsigned>(std::clamp<std::uint64_t>((words + kThreads * 4 - 1) / (kThreads * 4), 1, 4096));
}

std::uint32_t steps_for(std::uint32_t rows, std::uint32_t per_step) { return rows / per_step + (rows % per_step > 0); }

void check_launch(const char* kernel) { check(cudaGetLastError(), kernel); }

}  // namespace

unsigned streaming_grid() {
  int device = 0, multiprocessors = 0, blocks = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  check(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device), "cudaDeviceGetAttribute");
  check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, streaming, kThreads, 0),
        "cudaOccupancyMaxActiveBlocksPerMultiprocessor");
  return static_cast<unsigned>(std::max(1, multiprocessors * blocks));
}

void launch_streaming(const StreamingLaunch& launch, unsigned full_grid, cudaStream_t stream) {
  // Reads and writes begin and end together.
  const std::uint32_t reads = launch.read.rows, writes = launch.write.rows;
  const std::uint32_t writes_per_step =
      reads == 0 ? kRowsPerStep
                 : static_cast<std::uint32_t>(
                       std::min(std::ceil(static_cast<double>(kRowsPerStep) * writes / reads), 1.0 * kRowsPerStep));
  const std::uint32_t steps =
      std::max(steps_for(reads, kRowsPerStep), writes == 0 ? 0 : steps_for(writes, writes_per_step));
  const double multiply_adds = std::max(0.0, launch.flops) / 2;
  // A thread block is worth starting for 64 multiply-adds of each of its threads.
  const double wanted = std::max(static_cast<double>(steps), std::ceil(multiply_adds / (kThreads * 64)));
  const auto grid = static_cast<unsigned>(std::clamp(wanted, 1.0, static_cast<double>(full_grid)));
  const std::uint32_t per_block = std::max(1u, steps_for(steps, grid));
  const double per_step = multiply_adds / (static_cast<double>(grid) * kThreads * per_block);
  const auto chains = static_cast<std::uint32_t>(std::min(std::ceil(per_step / 4), 4e9));
  streaming<<<grid, kThreads, 0, stream>>>(launch.read, launch.write, per_block, writes_per_step, chains);
  check_launch("launch of the streaming kernel");
}

void launch_fill(void* data, std::size_t bytes, std::uint64_t tag, cudaStream_t stream) {
  if (bytes == 0) return;
  fill<<<blocks_for(bytes / 8), kThreads, 0, stream>>>(static_cast<std::uint64_t*>(data), bytes / 8,
                                                       static_cast<unsigned>(bytes % 8), tag);
  check_launch("launch of the kernel that fills memory");
}

void launch_compare(const void* data, std::size_t bytes, std::uint64_t tag, unsigned op, unsigned operand,
                    ContentRecord* record, cudaStream_t stream) {
  if (bytes == 0) return;
  compare<<<blocks_for(bytes / 8), kThreads, 0, stream>>>(static_cast<const std::uint64_t*>(data), bytes / 8,
                                                          static_cast<unsigned>(bytes % 8), tag, op, operand, record);
  check_launch("launch of the kernel that compares memory");
}

void launch_random_numbers(void* data, std::size_t bytes, cudaStream_t stream) {
  if (bytes < 8) return;
  random_numbers<<<blocks_for(bytes / 8), kThreads, 0, stream>>>(static_cast<std::uint64_t*>(data), bytes / 8);
  check_launch("launch of the kernel that writes random numbers");
}

void launch_occupy(std::uint64_t nanoseconds, unsigned blocks, cudaStream_t stream) {
  constexpr unsigned kCollectiveThreads = 512;  // as many as a block of NCCL's has
  int device = 0, shared = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  check(cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, device), "cudaDeviceGetAttribute");
  check(cudaFuncSetAttribute(occupy, cudaFuncAttributeMaxDynamicSharedMemorySize, shared), "cudaFuncSetAttribute");
  occupy<<<blocks, kCollectiveThreads, static_cast<std::size_t>(shared), stream>>>(nanoseconds);
  check_launch("launch of the kernel that stands in for a collective");
}

void launch_wait_for(const std::uint32_t* flag, std::uint32_t value, cudaStream_t stream) {
  wait_for<<<1, 1, 0, stream>>>(flag, value);
  check_launch("launch of the kernel that waits for a flag");
}

}  // namespace memwall
