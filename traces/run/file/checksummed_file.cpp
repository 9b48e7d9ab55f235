#include "traces/run/file/checksummed_file.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include "sim/files/input_file.h"
#include "sim/error.h"

namespace memwall {

ChecksummedFile::ChecksummedFile(const std::filesystem::path& path)
    : path_(path.string()), user_block_(read_user_block(path)) {
  descriptor_ = ::open(readable_path(path).c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor_ < 0) throw InputError(fmt::format("Run file '{}': it cannot be opened: {}.", path_, strerror(errno)));
  verified_.resize(user_block_.sums.size());
}

ChecksummedFile::~ChecksummedFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

bool ChecksummedFile::fail(std::string what) {
  failure_ = std::move(what);
  return false;
}

std::optional<std::string> ChecksummedFile::take_failure() { return std::exchange(failure_, std::nullopt); }

std::size_t ChecksummedFile::resident_bytes() const {
  return sizeof(*this) + buffer_.capacity() + user_block_.sums.capacity() * sizeof(std::uint64_t);
}

bool ChecksummedFile::read_plain(std::uint64_t offset, std::size_t size, char* out) {
  while (size > 0) {
    const ssize_t got = ::pread(descriptor_, out, size, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(fmt::format("bytes {} and on cannot be read: {}.", offset, strerror(errno)));
    if (got == 0) return fail(fmt::format("it ends at byte {}; it was cut off while it was open.", offset));
    offset += static_cast<std::uint64_t>(got);
    out += got;
    size -= static_cast<std::size_t>(got);
  }
  return true;
}

bool ChecksummedFile::verify(std::size_t piece) {
  const std::uint64_t begin = kUserBlockBytes + piece * user_block_.piece_bytes;
  buffer_.resize(static_cast<std::size_t>(std::min(user_block_.piece_bytes, user_block_.length - begin)));
  if (!read_plain(begin, buffer_.size(), buffer_.data())) return false;
  if (XXH64(buffer_.data(), buffer_.size(), 0) != user_block_.sums[piece])
    return fail(damaged_piece(user_block_, piece));
  verified_[piece] = true;
  return true;
}

bool ChecksummedFile::read(std::uint64_t offset, std::size_t size, void* out) {
  if (offset > user_block_.length || size > user_block_.length - offset)
    return fail(
        fmt::format("it points at {} bytes from byte {} on, but has {} bytes.", size, offset, user_block_.length));
  if (size == 0) return true;
  if (offset + size > kUserBlockBytes) {
    const std::uint64_t first = std::max(offset, kUserBlockBytes) - kUserBlockBytes;
    for (std::uint64_t piece = first / user_block_.piece_bytes;
         piece <= (offset + size - 1 - kUserBlockBytes) / user_block_.piece_bytes; ++piece)
      if (!verified_[static_cast<std::size_t>(piece)] && !verify(static_cast<std::size_t>(piece))) return false;
  }
  return read_plain(offset, size, static_cast<char*>(out));
}

}  // namespace memwall
