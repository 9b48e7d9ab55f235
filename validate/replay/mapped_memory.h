// Pages of the operating system, all of them present from the start, so that no page fault is measured as
// part of a copy or a kernel.
#pragma once

#include <cstddef>

#include "sim/units.h"

namespace memwall {

class MappedMemory {
 public:
  // Multiples of 4096. In huge pages where the system gives them. Throws std::bad_alloc: also where the pages
  // would fit in the address space only.
  explicit MappedMemory(Bytes bytes);
  ~MappedMemory();
  MappedMemory(MappedMemory&& other) noexcept;
  MappedMemory& operator=(MappedMemory&& other) noexcept;

  std::byte* data() const { return data_; }
  Bytes bytes() const { return bytes_; }
  // Keeps the pages from being swapped out. False where the system refuses.
  bool lock();

 private:
  std::byte* data_ = nullptr;
  Bytes bytes_ = 0;
};

}  // namespace memwall
