#include "validate/bench/page_locking.h"

#include <sys/mman.h>

#include <chrono>
#include <string>

#include "validate/bench/benchmark.h"

namespace memwall {
namespace {

class NewPages {
 public:
  explicit NewPages(std::size_t bytes) : bytes_(bytes) {
    data_ = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data_ == MAP_FAILED) throw NotApplicable(std::to_string(bytes) + " bytes of memory are not free");
  }
  ~NewPages() { ::munmap(data_, bytes_); }
  NewPages(const NewPages&) = delete;
  NewPages& operator=(const NewPages&) = delete;

  bool lock() { return ::mlock(data_, bytes_) == 0; }
  void touch() {
    volatile std::byte* const pages = static_cast<std::byte*>(data_);
    for (std::size_t i = 0; i < bytes_; i += kLockedPage) pages[i] = std::byte{1};
  }

 private:
  void* data_;
  std::size_t bytes_;
};

}  // namespace

bool can_lock(std::size_t bytes) { return NewPages(bytes).lock(); }

double seconds_of_allocation(std::size_t bytes, bool locked) {
  const auto start = std::chrono::steady_clock::now();
  NewPages pages(bytes);
  if (!locked)
    pages.touch();
  else if (!pages.lock())
    throw NotApplicable("the system refuses to lock " + std::to_string(bytes) + " bytes, which it did before");
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace memwall
