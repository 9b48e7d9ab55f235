// The bytes of a file in order, inflated where it is gzip, as many in a row as are asked for.
#pragma once

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <vector>

#include "models/workload/import/bytes/byte_source.h"

namespace memwall {

class ByteWindow {
 public:
  static constexpr std::size_t kMost = 256 << 10;

  explicit ByteWindow(const std::filesystem::path& path) : source_(path), buffer_(kMost) {}

  std::uint64_t position() const { return base_ + used_; }
  // The next `n` bytes, or null if the file ends before. REQUIRES: n <= kMost. They
  // stay until the next call.
  const char* take(std::size_t n) {
    if (size_ - used_ < n && !fill(n)) return nullptr;
    const char* at = buffer_.data() + used_;
    used_ += n;
    return at;
  }

 private:
  bool fill(std::size_t n) {
    std::memmove(buffer_.data(), buffer_.data() + used_, size_ - used_);
    base_ += used_;
    size_ -= used_;
    used_ = 0;
    size_ += source_.read(buffer_.data() + size_, buffer_.size() - size_);
    return size_ >= n;
  }

  ByteSource source_;
  std::vector<char> buffer_;
  std::size_t size_ = 0, used_ = 0;
  std::uint64_t base_ = 0;  // position of buffer_[0]
};

}  // namespace memwall
