// The kernels that the CUDA back end launches itself: streaming, contents, waiting. Plain functions, so that only
// one file needs nvcc. All of them queue and return; they throw CudaError.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace memwall {

// Memory is streamed in rows of this size, one 16-byte access of each of 256 threads.
inline constexpr std::size_t kRowBytes = 4096;
inline constexpr unsigned kMostStreamed = 8;  // pieces of memory per kernel and direction

// Rows that a kernel walks through: first those of `pieces`, then those of `scratch` from `scratch_first` on,
// around and around.
struct StreamedRows {
  unsigned char* piece[kMostStreamed] = {};     // 16-byte aligned
  std::uint32_t piece_end[kMostStreamed] = {};  // rows of this piece and of all before it
  std::uint32_t pieces = 0;
  unsigned char* scratch = nullptr;
  std::uint32_t scratch_rows = 1;  // a power of two
  std::uint32_t scratch_first = 0;
  std::uint32_t rows = 0;  // to walk through in all
};

struct StreamingLaunch {
  StreamedRows read, write;
  double flops = 0;
};

// Reads the rows of `read`, writes those of `write` and does the FLOPs (fp32 multiply-adds), all three spread over
// the kernel's time. `full_grid`: thread blocks that fill the device, see streaming_grid.
void launch_streaming(const StreamingLaunch& launch, unsigned full_grid, cudaStream_t stream);
// Thread blocks of the streaming kernel that the current device can hold at once.
unsigned streaming_grid();

// pattern(tag) of replay/pattern.h into `data`. REQUIRES: data aligned to 8 bytes.
void launch_fill(void* data, std::size_t bytes, std::uint64_t tag, cudaStream_t stream);

// What was found wrong, in device memory; all zero at the start.
struct ContentRecord {
  unsigned long long wrong_words;
  unsigned int claimed;  // 1 = what follows describes the first wrong word that was seen
  unsigned int op, operand;
  unsigned long long word, found, expected;
};
// Compares `data` with pattern(tag). REQUIRES: data aligned to 8 bytes; `record` in device memory.
void launch_compare(const void* data, std::size_t bytes, std::uint64_t tag, unsigned op, unsigned operand,
                    ContentRecord* record, cudaStream_t stream);

// Numbers of moderate size, whichever floating-point type they are read as: data in the range of real ones, since
// what a product draws in power depends on them. REQUIRES: data aligned to 8 bytes.
void launch_random_numbers(void* data, std::size_t bytes, cudaStream_t stream);

// Stands in for a collective: thread blocks with all the shared memory that a block may have, so that no two of them
// share a multiprocessor and kernels that need shared memory find none beside them. Each ends `nanoseconds` after it
// began, asleep between looks at the clock.
void launch_occupy(std::uint64_t nanoseconds, unsigned blocks, cudaStream_t stream);

// Ends once *flag has reached `value` (as a difference of 32-bit numbers), which the host sets. Occupies one warp:
// where the driver offers cuStreamWaitValue32 that is better.
void launch_wait_for(const std::uint32_t* flag, std::uint32_t value, cudaStream_t stream);

}  // namespace memwall
