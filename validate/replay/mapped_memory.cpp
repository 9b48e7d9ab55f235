#include "validate/replay/mapped_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <new>
#include <utility>

#include "validate/replay/host_computer.h"

namespace memwall {
namespace {

constexpr Bytes kPage = 4096;
// Smaller pieces are not worth a look at how much memory is left.
constexpr Bytes kMemoryCheckThreshold = MiB(16);

}  // namespace

MappedMemory::MappedMemory(Bytes bytes) : bytes_(std::max<Bytes>(1, (bytes + kPage - 1) / kPage) * kPage) {
  // Populating more pages than there are would not fail: the system would end some process.
  if (bytes_ >= kMemoryCheckThreshold && bytes_ > available_memory()) throw std::bad_alloc();
  const auto size = static_cast<std::size_t>(bytes_);
  void* data = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) throw std::bad_alloc();
  data_ = static_cast<std::byte*>(data);
  madvise(data, size, MADV_HUGEPAGE);
  volatile std::byte* pages = data_;
  for (std::size_t i = 0; i < size; i += static_cast<std::size_t>(kPage)) pages[i] = std::byte{0};
}

MappedMemory::~MappedMemory() {
  if (data_) munmap(data_, static_cast<std::size_t>(bytes_));
}

MappedMemory::MappedMemory(MappedMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

MappedMemory& MappedMemory::operator=(MappedMemory&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

bool MappedMemory::lock() { return mlock(data_, static_cast<std::size_t>(bytes_)) == 0; }

}  // namespace memwall
