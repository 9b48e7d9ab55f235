// Host memory that begins at a page, as files past the page cache and wide vector loads want it.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>

namespace memwall {

class PageBuffer {
 public:
  // At least `bytes`, in whole pages; not initialised. Throws std::bad_alloc.
  explicit PageBuffer(std::size_t bytes)
      : data_(std::aligned_alloc(kPage, (bytes + kPage - 1) / kPage * kPage), &std::free) {
    if (data_ == nullptr) throw std::bad_alloc();
  }
  template <class T = std::byte>
  T* as() const {
    return static_cast<T*>(data_.get());
  }

 private:
  static constexpr std::size_t kPage = 4096;
  std::unique_ptr<void, void (*)(void*)> data_;
};

}  // namespace memwall
