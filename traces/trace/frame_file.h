// A file of zstd frames behind a checked header: the container of a trace file.
//
// Header, 32 bytes, little endian: magic (8), version (u32), number of frames (u32),
// bytes after the header (u64), CRC-32 of those (u32), CRC-32 of the header so far (u32).
// Then frame by frame: compressed length (u32), one zstd frame that states its size.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>

#include "sim/files/file_writer.h"

struct ZSTD_CCtx_s;
struct ZSTD_DCtx_s;

namespace memwall {

// As PNG does it: the first byte is no text, and a transfer that alters line ends shows.
inline constexpr std::string_view kTraceMagic("\x89MWT\r\n\x1a\n", 8);

// No frame holds more than this when unpacked: what a hostile file can make us allocate at once.
inline constexpr std::size_t kLargestFrame = std::size_t{32} << 20;

// Replaces what is at `path` at `finish`; without it nothing has changed. Throws UsageError where the place cannot be
// written.
class FrameWriter {
 public:
  FrameWriter(std::filesystem::path path, std::uint32_t version);

  void append(std::string_view content);  // throws UsageError beyond kLargestFrame
  void finish();

 private:
  void write(std::string_view bytes);

  FileWriter file_;
  std::unique_ptr<ZSTD_CCtx_s, void (*)(ZSTD_CCtx_s*)> compressor_;
  std::string packed_;
  std::uint32_t version_;
  std::uint32_t frames_ = 0;
  std::uint64_t bytes_ = 0;
  std::uint32_t checksum_ = 0;
};

// Opens and verifies the whole file; throws InputError with a sentence that names it.
class FrameReader {
 public:
  FrameReader(const std::filesystem::path& path, std::uint32_t newest_version);

  std::uint32_t frames() const { return frames_; }
  std::size_t file_bytes() const { return content_.size() + 32; }
  // The next frame unpacked, valid until the next call. REQUIRES: fewer than frames() were taken.
  std::string_view next();
  // Throws unless all bytes were taken.
  void require_end() const;

 private:
  void read_header(std::ifstream& file, std::uint32_t newest_version);
  [[noreturn]] void fail(const std::string& what) const;

  std::string path_;
  std::unique_ptr<ZSTD_DCtx_s, void (*)(ZSTD_DCtx_s*)> decompressor_;
  std::string content_;
  std::string unpacked_;
  std::size_t position_ = 0;
  std::uint32_t frames_ = 0, taken_ = 0;
  std::uint64_t declared_bytes_ = 0;
  std::uint32_t checksum_ = 0;
};

}  // namespace memwall
