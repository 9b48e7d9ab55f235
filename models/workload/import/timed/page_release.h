// Memory of a long list that is read once from front to back, given back while it is read.
#pragma once

#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace memwall {

// Gives the whole pages of elements [from, to) back to the system. The list keeps its size; what stood there reads as
// zeros or as before. REQUIRES: from <= to <= values.size(), and nobody needs elements before `to` any more.
template <class T>
void release_pages(std::vector<T>& values, std::size_t from, std::size_t to) {
  static_assert(std::is_trivially_destructible_v<T> && std::is_trivially_copyable_v<T>);
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto list = reinterpret_cast<std::uintptr_t>(values.data());
  // The first page may hold elements that were spent earlier; never what lies in front of the list.
  const std::uintptr_t first = (list + page - 1) / page * page;
  const std::uintptr_t begin = std::max(first, (list + from * sizeof(T)) / page * page);
  const std::uintptr_t end = (list + to * sizeof(T)) / page * page;
  // A system that refuses keeps the memory: nothing else changes.
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

// What was freed and is kept for later goes back, too: of lists that grew, as much as they hold.
inline void trim_heap() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

}  // namespace memwall
