// A size that a person gave, as it was given and as sizes are printed.
#pragma once

#include <string>

#include "cli/print/format.h"
#include "sim/units.h"

namespace memwall {

// "24GiB (25.77 GB)", "60% (25.10 GB)"; the size alone where it was given in printed units, or not at all.
inline std::string given_size(const std::string& given, Bytes bytes) {
  const bool differs = given.ends_with("iB") || given.ends_with('%');
  return differs ? given + " (" + human_bytes(bytes) + ")" : human_bytes(bytes);
}

}  // namespace memwall
