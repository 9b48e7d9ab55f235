// Asks the system to back a large array by large pages: the first touch of a gigabyte then costs some hundred page faults
// instead of 262,144. A hint; nothing depends on it.
#pragma once

#include <cstddef>
#include <cstdint>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace memwall {

// `bytes` from `memory` on; what does not fill a page of 2 MiB stays as it is.
inline void advise_large_pages([[maybe_unused]] const void* memory, [[maybe_unused]] std::size_t bytes) {
#ifdef MADV_HUGEPAGE
  constexpr std::uintptr_t kPage = std::uintptr_t{2} << 20;
  const auto begin = (reinterpret_cast<std::uintptr_t>(memory) + kPage - 1) / kPage * kPage;
  const auto end = (reinterpret_cast<std::uintptr_t>(memory) + bytes) / kPage * kPage;
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
#endif
}

}  // namespace memwall
