#include "sim/files/output_stream.h"

namespace memwall {

FileWriterBuffer::FileWriterBuffer(FileWriter& writer) : writer_(writer) {
  setp(buffer_.data(), buffer_.data() + buffer_.size());
}

FileWriterBuffer::int_type FileWriterBuffer::overflow(int_type character) {
  FileWriterBuffer::sync();
  if (traits_type::eq_int_type(character, traits_type::eof())) return traits_type::not_eof(character);
  return sputc(traits_type::to_char_type(character));
}

int FileWriterBuffer::sync() {
  const std::string_view bytes(pbase(), static_cast<std::size_t>(pptr() - pbase()));
  setp(buffer_.data(), buffer_.data() + buffer_.size());
  writer_.append(bytes);
  return 0;
}

}  // namespace memwall
