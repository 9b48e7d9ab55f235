#include "traces/trace/frame_file.h"

#include <fmt/format.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cassert>
#include <new>
#include <system_error>
#include <utility>

#include "sim/files/input_file.h"
#include "sim/error.h"

namespace memwall {
namespace {

constexpr std::size_t kHeaderBytes = 32;
constexpr int kCompressionLevel = 3;  // zstd's default

void put(std::string& out, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out.push_back(static_cast<char>((value >> (8 * i)) & 0xff));
}

std::uint64_t take(std::string_view bytes, std::size_t at, int count) {
  std::uint64_t value = 0;
  for (int i = 0; i < count; ++i)
    value |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes[at + static_cast<std::size_t>(i)])) << (8 * i);
  return value;
}

std::uint32_t crc(std::string_view bytes, std::uint32_t so_far = 0) {
  return static_cast<std::uint32_t>(crc32_z(so_far, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

std::string header(std::uint32_t version, std::uint32_t frames, std::uint64_t bytes, std::uint32_t checksum) {
  std::string text(kTraceMagic);
  put(text, version, 4);
  put(text, frames, 4);
  put(text, bytes, 8);
  put(text, checksum, 4);
  put(text, crc(text), 4);
  return text;
}

}  // namespace

FrameWriter::FrameWriter(std::filesystem::path path, std::uint32_t version)
    : file_(std::move(path)),
      compressor_(ZSTD_createCCtx(), [](ZSTD_CCtx* c) { ZSTD_freeCCtx(c); }),
      version_(version) {
  if (!compressor_) throw std::bad_alloc();
  ZSTD_CCtx_setParameter(compressor_.get(), ZSTD_c_compressionLevel, kCompressionLevel);
  ZSTD_CCtx_setParameter(compressor_.get(), ZSTD_c_contentSizeFlag, 1);
  file_.append(std::string(kHeaderBytes, '\0'));  // replaced at the end, when the sizes are known
}

void FrameWriter::write(std::string_view bytes) {
  file_.append(bytes);
  bytes_ += bytes.size();
  checksum_ = crc(bytes, checksum_);
}

void FrameWriter::append(std::string_view content) {
  if (content.size() > kLargestFrame)
    throw UsageError(fmt::format("Cannot write '{}': one part of the trace takes {} bytes; expected at most {}.",
                                 file_.path().string(), content.size(), kLargestFrame));
  packed_.resize(ZSTD_compressBound(content.size()));
  const std::size_t size =
      ZSTD_compress2(compressor_.get(), packed_.data(), packed_.size(), content.data(), content.size());
  if (ZSTD_isError(size)) throw std::runtime_error(fmt::format("zstd failed: {}", ZSTD_getErrorName(size)));
  std::string length;
  put(length, size, 4);
  write(length);
  write(std::string_view(packed_).substr(0, size));
  ++frames_;
}

void FrameWriter::finish() {
  file_.write_at(0, header(version_, frames_, bytes_, checksum_));
  file_.commit();
}

FrameReader::FrameReader(const std::filesystem::path& path, std::uint32_t newest_version)
    : path_(path.string()), decompressor_(ZSTD_createDCtx(), [](ZSTD_DCtx* c) { ZSTD_freeDCtx(c); }) {
  if (!decompressor_) throw std::bad_alloc();
  std::error_code error;
  const std::filesystem::path to_open = readable_path(path, "a trace file");
  const std::uintmax_t size = std::filesystem::file_size(to_open, error);
  std::ifstream file(to_open, std::ios::binary);
  if (error || !file) fail("cannot be opened");
  read_header(file, newest_version);
  if (size != kHeaderBytes + declared_bytes_)
    fail(fmt::format("holds {} bytes where its header says {}; it is truncated or was appended to", size,
                     kHeaderBytes + declared_bytes_));
  content_.resize(declared_bytes_);
  file.read(content_.data(), static_cast<std::streamsize>(content_.size()));
  if (!file) fail("could not be read to its end");
  if (const std::uint32_t found = crc(content_); found != checksum_)
    fail(fmt::format("is damaged: its checksum is {:08x}, expected {:08x}", found, checksum_));
}

void FrameReader::read_header(std::ifstream& file, std::uint32_t newest_version) {
  std::string text(kHeaderBytes, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  const auto found = static_cast<std::size_t>(file.gcount());
  if (std::string_view(text).substr(0, std::min(found, kTraceMagic.size())) != kTraceMagic)
    fail("is not a trace file: it does not start with memwall's mark");
  if (found < kHeaderBytes) fail(fmt::format("ends after {} bytes, within its header of {}", found, kHeaderBytes));
  const auto version = static_cast<std::uint32_t>(take(text, 8, 4));
  if (version > newest_version)
    fail(fmt::format("has version {} of the format; this memwall reads up to {}", version, newest_version));
  if (crc(std::string_view(text).substr(0, 28)) != take(text, 28, 4))
    fail("is damaged: the checksum of its header is wrong");
  if (version == 0) fail("has version 0 of the format, which never was");
  frames_ = static_cast<std::uint32_t>(take(text, 12, 4));
  declared_bytes_ = take(text, 16, 8);
  checksum_ = static_cast<std::uint32_t>(take(text, 24, 4));
}

std::string_view FrameReader::next() {
  assert(taken_ < frames_);
  ++taken_;
  if (content_.size() - position_ < 4) fail(fmt::format("ends before part {} of {}", taken_, frames_));
  const std::size_t size = take(content_, position_, 4);
  position_ += 4;
  if (size > content_.size() - position_)
    fail(fmt::format("has a part {} of {} bytes where only {} are left", taken_, size, content_.size() - position_));
  const char* const packed = content_.data() + position_;
  const unsigned long long unpacked = ZSTD_getFrameContentSize(packed, size);
  if (unpacked == ZSTD_CONTENTSIZE_UNKNOWN || unpacked == ZSTD_CONTENTSIZE_ERROR)
    fail(fmt::format("has a part {} that is no zstd frame of stated size", taken_));
  if (unpacked > kLargestFrame)
    fail(fmt::format("has a part {} of {} bytes; expected at most {}", taken_, unpacked, kLargestFrame));
  unpacked_.resize(static_cast<std::size_t>(unpacked));
  const std::size_t got = ZSTD_decompressDCtx(decompressor_.get(), unpacked_.data(), unpacked_.size(), packed, size);
  if (ZSTD_isError(got))
    fail(fmt::format("has a part {} that cannot be unpacked ({})", taken_, ZSTD_getErrorName(got)));
  if (got != unpacked) fail(fmt::format("has a part {} of {} bytes that says it has {}", taken_, got, unpacked));
  position_ += size;
  return unpacked_;
}

void FrameReader::require_end() const {
  if (position_ != content_.size()) fail(fmt::format("has {} bytes after its last part", content_.size() - position_));
}

void FrameReader::fail(const std::string& what) const {
  throw InputError(fmt::format("The trace file '{}' {}.", path_, what));
}

}  // namespace memwall
