// The fields of one record of a .mwi file, taken one after the other.
// Internal to the reader of these files.
#pragma once

#include <cstddef>
#include <cstdint>

namespace memwall {

// REQUIRES: the record has what is taken.
class InjectFields {
 public:
  explicit InjectFields(const char* at) : at_(at) {}
  std::uint8_t u8() { return take<std::uint8_t>(); }
  std::uint16_t u16() { return take<std::uint16_t>(); }
  std::uint32_t u32() { return take<std::uint32_t>(); }
  std::uint64_t u64() { return take<std::uint64_t>(); }
  void skip(std::size_t bytes) { at_ += bytes; }

 private:
  // Byte by byte: the file is little endian, whatever this machine is.
  template <class Number>
  Number take() {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < sizeof(Number); ++i)
      value |= static_cast<std::uint64_t>(static_cast<unsigned char>(at_[i])) << (8 * i);
    at_ += sizeof(Number);
    return static_cast<Number>(value);
  }
  const char* at_;
};

}  // namespace memwall
