// The lines of a text file, inflated where it is gzip, one by one and never more than one at once.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "models/workload/import/bytes/byte_source.h"

namespace memwall {

class LineSource {
 public:
  // Readable bytes behind every line, as simdjson asks for.
  static constexpr std::size_t kPadding = 64;

  // Lines of more than `longest` bytes are refused. Throws InputError, as `next` does, where the file
  // cannot be opened or read.
  LineSource(const std::filesystem::path& path, std::size_t longest);

  // The next line that is not blank, without its end; false after the last. Valid until the next call.
  bool next(std::string_view& line);

  // Of the line handed out last, counted from 1.
  std::uint64_t number() const { return number_; }
  // Throws InputError "FILE, line N: sentence".
  [[noreturn]] void fail(const std::string& sentence) const;

 private:
  bool read_line(std::string_view& line);
  bool refill();

  std::filesystem::path path_;
  ByteSource bytes_;
  std::size_t longest_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0, end_ = 0;
  std::uint64_t number_ = 0;
};

}  // namespace memwall
