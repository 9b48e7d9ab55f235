// Writes Chakra's protobuf files byte by byte, by the wire format alone. For tests of its reader.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace memwall {

inline std::string wire_varint(std::uint64_t n) {
  std::string bytes;
  for (; n >= 0x80; n >>= 7) bytes += static_cast<char>(n | 0x80);
  return bytes + static_cast<char>(n);
}
inline std::string wire_number(int field, std::uint64_t n) {
  return wire_varint(static_cast<std::uint64_t>(field) << 3) + wire_varint(n);
}
inline std::string wire_bytes_of(int field, std::string_view bytes) {
  return wire_varint(static_cast<std::uint64_t>(field) << 3 | 2) + wire_varint(bytes.size()) + std::string(bytes);
}
inline std::string delimited(std::string_view message) { return wire_varint(message.size()) + std::string(message); }

// One node; what is 0 or empty is left out, as proto3 does.
struct WrittenNode {
  std::uint64_t id = 0;
  std::string name{};
  int type = 4;
  std::vector<std::uint64_t> control{}, data{};
  std::uint64_t duration = 0;
  std::string values{}, shapes{}, types{};              // inputs
  std::string out_values{}, out_shapes{}, out_types{};  // outputs
  std::string attributes{};                             // encoded

  // An attribute as int64; `field` chooses another integer type of the format.
  WrittenNode& with(std::string_view attribute, std::uint64_t n, int field = 9) {
    attributes += wire_bytes_of(10, wire_bytes_of(1, attribute) + wire_number(field, n));
    return *this;
  }
  WrittenNode& with(std::string_view attribute, std::string_view text) {
    attributes += wire_bytes_of(10, wire_bytes_of(1, attribute) + wire_bytes_of(29, text));
    return *this;
  }
  std::string message() const {
    std::string m;
    if (id != 0) m += wire_number(1, id);
    if (!name.empty()) m += wire_bytes_of(2, name);
    if (type != 0) m += wire_number(3, static_cast<std::uint64_t>(type));
    for (const std::uint64_t d : control) m += wire_number(4, d);
    if (!data.empty()) {  // packed
      std::string packed;
      for (const std::uint64_t d : data) packed += wire_varint(d);
      m += wire_bytes_of(5, packed);
    }
    if (duration != 0) m += wire_number(7, duration);
    const auto arguments = [&](int field, const std::string& v, const std::string& s, const std::string& t) {
      if (!v.empty()) m += wire_bytes_of(field, wire_bytes_of(1, v) + wire_bytes_of(2, s) + wire_bytes_of(3, t));
    };
    arguments(8, values, shapes, types);
    arguments(9, out_values, out_shapes, out_types);
    return m + attributes;
  }
};

inline std::string chakra_file(const std::vector<WrittenNode>& nodes, std::string_view version = "0.0.4") {
  std::string file = delimited(wire_bytes_of(1, version));
  for (const WrittenNode& node : nodes) file += delimited(node.message());
  return file;
}

}  // namespace memwall
