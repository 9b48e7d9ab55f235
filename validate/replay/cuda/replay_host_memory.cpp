#include "validate/replay/cuda/replay_host_memory.h"

#include <algorithm>
#include <new>
#include <utility>

namespace memwall {
namespace {

constexpr Bytes kPage = 4096;

}  // namespace

Buffer ReplayHostMemory::allocate(Bytes bytes, bool pinned) {
  const Bytes room = (std::max<Bytes>(bytes, 1) + kPage - 1) / kPage * kPage;
  const std::lock_guard lock(mutex_);
  if (!pinned) {
    MappedMemory memory(room);
    void* data = memory.data();
    pageable_.emplace(data, std::move(memory));
    return {PlaceClass::pageable, data, 0, bytes};
  }
  try {
    auto memory = std::make_unique<PinnedBuffer>(static_cast<std::size_t>(room));
    void* data = memory->data();
    pinned_.emplace(data, std::move(memory));
    return {PlaceClass::pinned, data, 0, bytes};
  } catch (const CudaError& error) {
    if (error.code() == cudaErrorMemoryAllocation) throw std::bad_alloc();
    throw;
  }
}

void ReplayHostMemory::free(const Buffer& buffer) {
  const std::lock_guard lock(mutex_);
  if (buffer.place_class == PlaceClass::pinned)
    pinned_.erase(buffer.data);
  else
    pageable_.erase(buffer.data);
}

}  // namespace memwall
