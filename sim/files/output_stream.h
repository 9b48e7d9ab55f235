// A FileWriter as a stream, for what is written as text.
#pragma once

#include <array>
#include <ostream>
#include <streambuf>

#include "sim/files/file_writer.h"

namespace memwall {

// The buffer of a FileWriterStream.
class FileWriterBuffer : public std::streambuf {
 public:
  explicit FileWriterBuffer(FileWriter& writer);

 private:
  int_type overflow(int_type character) override;
  int sync() override;

  FileWriter& writer_;
  std::array<char, 65536> buffer_;
};

// Throws FileWriter's UsageError from the output that fails. flush() before FileWriter::commit(). `writer` must outlive
// it.
class FileWriterStream : public std::ostream {
 public:
  explicit FileWriterStream(FileWriter& writer) : std::ostream(nullptr), buffer_(writer) {
    rdbuf(&buffer_);
    exceptions(std::ios::badbit);  // then what the buffer throws is passed on
  }

 private:
  FileWriterBuffer buffer_;
};

}  // namespace memwall
