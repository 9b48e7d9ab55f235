#include <algorithm>
#include <cstring>
#include <new>

#include "validate/bench/cuda/cuda_buffers.h"
#include "validate/replay/pattern.h"

namespace memwall {
namespace {

constexpr unsigned kThreadsCudaBuffers = 256;
constexpr unsigned kBlocks = 1024;  // grid-stride loops: enough for any device
constexpr std::size_t kWord = sizeof(std::uint64_t);

__device__ std::size_t thread_of_grid() { return std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; }
__device__ std::size_t threads_of_grid() { return std::size_t{gridDim.x} * blockDim.x; }

// The byte at `offset` of the pattern, for what is left after the last whole word.
__host__ __device__ unsigned char pattern_byte(std::uint64_t tag, std::size_t offset) {
  return static_cast<unsigned char>(pattern_word(tag, offset / kWord) >> (8 * (offset % kWord)));
}

__global__ void write_pattern(std::uint64_t* words, std::size_t bytes, std::uint64_t tag) {
  const std::size_t count = bytes / kWord;
  for (std::size_t i = thread_of_grid(); i < count; i += threads_of_grid()) words[i] = pattern_word(tag, i);
  if (thread_of_grid() != 0) return;
  for (std::size_t at = count * kWord; at < bytes; ++at)
    reinterpret_cast<unsigned char*>(words)[at] = pattern_byte(tag, at);
}

__global__ void compare_pattern(const std::uint64_t* words, std::size_t bytes, std::uint64_t tag,
                                unsigned long long* mismatches) {
  const std::size_t count = bytes / kWord;
  unsigned long long wrong = 0;
  for (std::size_t i = thread_of_grid(); i < count; i += threads_of_grid()) wrong += words[i] != pattern_word(tag, i);
  if (thread_of_grid() == 0)
    for (std::size_t at = count * kWord; at < bytes; ++at)
      wrong += reinterpret_cast<const unsigned char*>(words)[at] != pattern_byte(tag, at);
  if (wrong != 0) atomicAdd(mismatches, wrong);
}

__global__ void write_uniform(float* data, std::size_t count, std::uint64_t tag) {
  for (std::size_t i = thread_of_grid(); i < count; i += threads_of_grid())
    data[i] = static_cast<float>(pattern_word(tag, i) >> 40) * 0x1p-23f - 1.0f;
}

void write_pattern_on_host(void* data, std::size_t bytes, std::uint64_t tag) {
  auto* words = static_cast<std::uint64_t*>(data);
  const std::size_t count = bytes / kWord;
  for (std::size_t i = 0; i < count; ++i) words[i] = pattern_word(tag, i);
  for (std::size_t at = count * kWord; at < bytes; ++at) static_cast<unsigned char*>(data)[at] = pattern_byte(tag, at);
}

std::uint64_t compare_pattern_on_host(const void* data, std::size_t bytes, std::uint64_t tag) {
  const auto* words = static_cast<const std::uint64_t*>(data);
  const std::size_t count = bytes / kWord;
  std::uint64_t wrong = 0;
  for (std::size_t i = 0; i < count; ++i) wrong += words[i] != pattern_word(tag, i);
  for (std::size_t at = count * kWord; at < bytes; ++at)
    wrong += static_cast<const unsigned char*>(data)[at] != pattern_byte(tag, at);
  return wrong;
}

void finish(const char* what) {
  check(cudaGetLastError(), what);
  check(cudaDeviceSynchronize(), what);
}

}  // namespace

PageableBuffer::PageableBuffer(std::size_t bytes)
    : data_(std::aligned_alloc(4096, std::max<std::size_t>((bytes + 4095) / 4096 * 4096, 4096))), bytes_(bytes) {
  if (!data_) throw std::bad_alloc();
}

void CheckedRange::fill(std::uint64_t tag) const {
  if (!on_device) return write_pattern_on_host(data, bytes, tag);
  write_pattern<<<kBlocks, kThreadsCudaBuffers>>>(static_cast<std::uint64_t*>(data), bytes, tag);
  finish("the kernel that fills memory");
}

void CheckedRange::poison() const {
  if (!on_device) {
    std::memset(data, 0xa5, bytes);
    return;
  }
  check(cudaMemset(data, 0xa5, bytes), "cudaMemset");
  check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
}

std::uint64_t CheckedRange::mismatches(std::uint64_t tag) const {
  if (!on_device) return compare_pattern_on_host(data, bytes, tag);
  const DeviceCounter wrong;
  compare_pattern<<<kBlocks, kThreadsCudaBuffers>>>(static_cast<const std::uint64_t*>(data), bytes, tag, wrong.get());
  finish("the kernel that compares memory");
  return wrong.value();
}

void CheckedRange::verify(std::uint64_t tag, Measurement& m) const {
  note_mismatches(mismatches(tag), std::to_string((bytes + kWord - 1) / kWord) + " words", m);
}

void fill_uniform(float* data, std::size_t count, std::uint64_t tag) {
  write_uniform<<<kBlocks, kThreadsCudaBuffers>>>(data, count, tag);
  finish("the kernel that fills memory with numbers");
}

void note_mismatches(std::uint64_t mismatches, const std::string& what, Measurement& m) {
  if (mismatches == 0) return;
  m.status = MeasurementStatus::failed;
  m.note = "wrong data: " + std::to_string(mismatches) + " of " + what + " are wrong.";
}

DeviceCounter::DeviceCounter() { reset(); }

std::uint64_t DeviceCounter::value() const {
  unsigned long long count = 0;
  check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  check(cudaMemcpy(&count, count_.data(), sizeof count, cudaMemcpyDeviceToHost), "cudaMemcpy");
  return count;
}

void DeviceCounter::reset() const {
  check(cudaMemset(count_.data(), 0, count_.bytes()), "cudaMemset");
  check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
}

}  // namespace memwall
