#include "cli/large_arrays.h"

#include <malloc.h>
#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <new>

// Sanitizers bring allocation functions of their own, which find errors that these would hide.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__GLIBC__)
#define MEMWALL_OWN_ARRAYS 0
#else
#define MEMWALL_OWN_ARRAYS 1
#endif

namespace memwall {

void keep_freed_memory() {
#if MEMWALL_OWN_ARRAYS
  constexpr int kStep = 64 << 20;  // bytes by which the heap grows
  ::mallopt(M_MMAP_MAX, 0);        // large arrays from the heap too, so that the next one may lie where one was
  ::mallopt(M_TRIM_THRESHOLD, -1);
  ::mallopt(M_TOP_PAD, kStep);
#endif
}

void give_back_freed_memory() {
#if MEMWALL_OWN_ARRAYS
  ::malloc_trim(0);
#endif
}

}  // namespace memwall

#if MEMWALL_OWN_ARRAYS

namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t kLarge = 2 * kHugePage;  // below, aligning would waste more than it gains

void* allocate(std::size_t bytes) {
  if (bytes < kLarge) return std::malloc(bytes > 0 ? bytes : 1);
  const std::size_t pages = (bytes + kHugePage - 1) / kHugePage * kHugePage;
  if (pages < bytes) return nullptr;
  void* const memory = std::aligned_alloc(kHugePage, pages);
  if (memory != nullptr) ::madvise(memory, pages, MADV_HUGEPAGE);  // a wish: the system may lack huge pages
  return memory;
}

}  // namespace

// The standard lets a program replace these; the forms for arrays and without exceptions call them, and `delete` frees.
void* operator new(std::size_t bytes) {
  for (;;) {
    if (void* const memory = allocate(bytes)) return memory;
    const std::new_handler handler = std::get_new_handler();
    if (handler == nullptr) throw std::bad_alloc();
    handler();
  }
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

#endif
