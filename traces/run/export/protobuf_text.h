// Writes Protobuf's wire format by hand, for messages of which a few fields are needed.
//
// Source: protobuf.dev/programming-guides/encoding. A message is built as bytes and put
// into its parent as a field.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

namespace memwall {

class ProtobufText {
 public:
  void number(std::uint32_t field, std::uint64_t value) {
    tag(field, 0);
    varint(value);
  }
  void fixed(std::uint32_t field, std::uint64_t value) {
    tag(field, 1);
    for (int i = 0; i < 8; ++i) bytes_.push_back(static_cast<char>(value >> (8 * i) & 0xff));
  }
  void real(std::uint32_t field, double value) { fixed(field, std::bit_cast<std::uint64_t>(value)); }
  void text(std::uint32_t field, std::string_view value) {
    tag(field, 2);
    varint(value.size());
    bytes_.append(value);
  }
  void message(std::uint32_t field, const ProtobufText& value) { text(field, value.bytes_); }

  const std::string& bytes() const { return bytes_; }
  void clear() { bytes_.clear(); }

 private:
  void tag(std::uint32_t field, std::uint32_t wire_type) { varint(std::uint64_t{field} << 3 | wire_type); }
  void varint(std::uint64_t value) {
    while (value >= 0x80) {
      bytes_.push_back(static_cast<char>(value | 0x80));
      value >>= 7;
    }
    bytes_.push_back(static_cast<char>(value));
  }

  std::string bytes_;
};

}  // namespace memwall
