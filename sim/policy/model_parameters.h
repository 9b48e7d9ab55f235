// The parameters and buffers of a model by their names, and a fingerprint by which a program tells whether its model is
// the one that a plan was made for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/text_hash.h"
#include "sim/units.h"

namespace memwall {

// As named_parameters() and named_buffers() of PyTorch name it; a storage that several share has the first one's name.
struct NamedParameter {
  std::string name;
  Bytes bytes = 0;  // of the storage

  bool operator==(const NamedParameter&) const = default;
};

inline Bytes total_bytes(const std::vector<NamedParameter>& parameters) {
  Bytes total = 0;
  for (const NamedParameter& p : parameters) total += p.bytes;
  return total;
}

// 64-bit FNV-1a of a line "NAME BYTES\n" per parameter. REQUIRES: ascending by name, as bytes.
inline std::uint64_t fingerprint_of(const std::vector<NamedParameter>& parameters) {
  std::string lines;
  for (const NamedParameter& p : parameters) lines += p.name + " " + std::to_string(p.bytes) + "\n";
  return hash_of(lines);
}

}  // namespace memwall
