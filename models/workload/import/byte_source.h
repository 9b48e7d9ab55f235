// The bytes of a file, inflated where it is gzip (told by its first two bytes).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <vector>

struct z_stream_s;

namespace memwall {

class ByteSource {
 public:
  // Throws InputError where the file cannot be opened or read.
  explicit ByteSource(const std::filesystem::path& path);
  ~ByteSource();

  // Up to `size` more bytes; fewer only at the end, 0 after it. Throws InputError where a gzip
  // stream is damaged or ends early, naming the byte of the compressed file.
  std::size_t read(char* to, std::size_t size);

 private:
  std::size_t read_plain(char* to, std::size_t size);
  std::size_t read_inflated(char* to, std::size_t size);
  bool fill_input();
  [[noreturn]] void fail(const char* found) const;

  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::filesystem::path path_;
  std::unique_ptr<std::FILE, Close> file_;
  std::vector<unsigned char> input_;  // compressed bytes
  std::size_t input_size_ = 0, input_used_ = 0;
  std::uint64_t input_base_ = 0;        // position of input_[0] in the file
  std::unique_ptr<z_stream_s> stream_;  // null: the file is plain
  bool member_open_ = false;            // inside a gzip member
};

}  // namespace memwall
