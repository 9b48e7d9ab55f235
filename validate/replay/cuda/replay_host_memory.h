// Host memory of the CUDA back end, page-locked by the driver or plain pages of the operating system.
#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "validate/replay/backend.h"
#include "validate/replay/cuda/cuda_handles.h"
#include "validate/replay/mapped_memory.h"

namespace memwall {

// May be used from several threads.
class ReplayHostMemory {
 public:
  // Begins at a multiple of 4096 and reaches to the next, as direct file access needs. Throws std::bad_alloc.
  // REQUIRES: the device is current.
  Buffer allocate(Bytes bytes, bool pinned);
  // REQUIRES: allocate gave `buffer`; nothing uses it.
  void free(const Buffer& buffer);

 private:
  std::mutex mutex_;
  std::map<void*, std::unique_ptr<PinnedBuffer>> pinned_;
  std::map<void*, MappedMemory> pageable_;
};

}  // namespace memwall
