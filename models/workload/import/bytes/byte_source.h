// The bytes of a file, unpacked where it is gzip, an archive with one file in it, or compressed by zstd, xz or bzip2
// (all told by content). "ARCHIVE:MEMBER" names one of several files in an archive.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <vector>

struct z_stream_s;

namespace memwall {

class ArchiveSource;

class ByteSource {
 public:
  // Throws InputError where the file cannot be opened or read.
  explicit ByteSource(const std::filesystem::path& path);
  ~ByteSource();

  // Up to `size` more bytes; fewer only at the end, 0 after it. Throws InputError where a compressed
  // stream is damaged or ends early, naming the byte of the compressed file, and where little unpacks
  // to so much that it can only be meant to fill a memory.
  std::size_t read(char* to, std::size_t size);

 private:
  void begin();
  void require_harmless(std::uint64_t compressed) const;
  std::size_t read_plain(char* to, std::size_t size);
  std::size_t read_inflated(char* to, std::size_t size);
  bool fill_input();
  [[noreturn]] void fail(const char* found) const;

  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  // Also where the constructor throws: a damaged file.
  struct EndInflate {
    void operator()(z_stream_s* stream) const;
  };
  std::filesystem::path path_;
  std::unique_ptr<std::FILE, Close> file_;
  std::vector<unsigned char> input_;  // compressed bytes
  std::size_t input_size_ = 0, input_used_ = 0;
  std::uint64_t input_base_ = 0;                    // position of input_[0] in the file
  std::unique_ptr<z_stream_s, EndInflate> stream_;  // null: the file is plain
  bool member_open_ = false;                        // inside a gzip member
  std::unique_ptr<ArchiveSource> archive_;          // null: the file is none
  std::vector<char> first_;                         // inflated to see what it is, not yet read
  std::size_t first_used_ = 0;
  std::uint64_t unpacked_ = 0;  // bytes handed out
};

}  // namespace memwall
