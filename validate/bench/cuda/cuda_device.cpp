#include "validate/bench/cuda/cuda_device.h"

#include <algorithm>
#include <bit>

#include "validate/replay/cuda/cuda_handles.h"
#include "validate/replay/cuda_backend.h"

namespace memwall {
namespace {

constexpr std::size_t kLeastBuffer = std::size_t{1} << 20;

}  // namespace

void require_device() {
  if (const std::string reason = cuda_unavailable_reason(); !reason.empty()) throw NotApplicable(reason);
  check(cudaSetDevice(0), "cudaSetDevice");
}

unsigned multiprocessors() {
  int count = 0;
  check(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, 0), "cudaDeviceGetAttribute");
  return static_cast<unsigned>(count);
}

std::size_t free_device_bytes() {
  std::size_t free = 0, total = 0;
  check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  return free;
}

std::size_t largest_device_buffer(const BenchmarkRun& run, unsigned buffers, std::size_t most) {
  const std::size_t fits = free_device_bytes() / 4 * 3 / buffers;
  const std::size_t largest = std::bit_floor(std::min({fits, run.settings().largest_buffer, most}));
  if (largest < kLeastBuffer)
    throw NotApplicable("needs buffers of 1 MiB; the device has " + std::to_string(free_device_bytes()) +
                        " bytes free, and a buffer may have " + std::to_string(run.settings().largest_buffer) + ".");
  return largest;
}

std::vector<std::size_t> copy_sizes(std::size_t largest) {
  std::vector<std::size_t> sizes = sizes_between(std::size_t{4} << 10, std::min(largest, std::size_t{1} << 30), 4);
  if (const std::size_t segment = std::size_t{2} << 20; segment <= largest) sizes.push_back(segment);
  std::sort(sizes.begin(), sizes.end());
  return sizes;
}

std::vector<std::size_t> sizes_between(std::size_t smallest, std::size_t largest, std::size_t factor) {
  std::vector<std::size_t> sizes;
  for (std::size_t size = smallest; size <= largest; size *= factor) sizes.push_back(size);
  return sizes;
}

}  // namespace memwall
