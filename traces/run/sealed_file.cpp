#include "traces/run/sealed_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include "sim/error.h"
#include "traces/run/checksum.h"

namespace memwall {

SealedFile::SealedFile(const std::filesystem::path& path) : path_(path.string()), seal_(read_seal(path)) {
  descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor_ < 0) throw InputError(fmt::format("Run file '{}': it cannot be opened: {}.", path_, strerror(errno)));
  verified_.resize(seal_.sums.size());
}

SealedFile::~SealedFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

bool SealedFile::fail(std::string what) {
  failure_ = std::move(what);
  return false;
}

std::optional<std::string> SealedFile::take_failure() { return std::exchange(failure_, std::nullopt); }

std::size_t SealedFile::resident_bytes() const {
  return sizeof(*this) + buffer_.capacity() + seal_.sums.capacity() * sizeof(std::uint64_t);
}

bool SealedFile::read_plain(std::uint64_t offset, std::size_t size, char* out) {
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

bool SealedFile::verify(std::size_t piece) {
  const std::uint64_t begin = kEnvelopeBytes + piece * seal_.piece_bytes;
  buffer_.resize(static_cast<std::size_t>(std::min(seal_.piece_bytes, seal_.length - begin)));
  if (!read_plain(begin, buffer_.size(), buffer_.data())) return false;
  if (xxh64(buffer_.data(), buffer_.size()) != seal_.sums[piece]) return fail(damaged_piece(seal_, piece));
  verified_[piece] = true;
  return true;
}

bool SealedFile::read(std::uint64_t offset, std::size_t size, void* out) {
  if (offset > seal_.length || size > seal_.length - offset)
    return fail(fmt::format("it points at {} bytes from byte {} on, but has {} bytes.", size, offset, seal_.length));
  if (size == 0) return true;
  if (offset + size > kEnvelopeBytes) {
    const std::uint64_t first = std::max(offset, kEnvelopeBytes) - kEnvelopeBytes;
    for (std::uint64_t piece = first / seal_.piece_bytes;
         piece <= (offset + size - 1 - kEnvelopeBytes) / seal_.piece_bytes; ++piece)
      if (!verified_[static_cast<std::size_t>(piece)] && !verify(static_cast<std::size_t>(piece))) return false;
  }
  return read_plain(offset, size, static_cast<char*>(out));
}

}  // namespace memwall
