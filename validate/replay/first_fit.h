// Room in a line of addresses: the lowest free piece that is large enough is taken, and neighbours join when
// they come back. For an arena of memory and for a file alike.
#pragma once

#include <map>
#include <optional>

#include "sim/units.h"

namespace memwall {

class FirstFit {
 public:
  // Offsets 0 to `capacity`; every piece begins at and occupies a multiple of `granularity`.
  // REQUIRES: capacity >= 0, granularity > 0.
  FirstFit(Bytes capacity, Bytes granularity);

  // The offset, or nothing if no piece is large enough. REQUIRES: bytes >= 0.
  std::optional<Bytes> take(Bytes bytes);
  // REQUIRES: take(bytes) gave `offset`.
  void give_back(Bytes offset, Bytes bytes);

  Bytes free_bytes() const { return free_bytes_; }
  Bytes largest_free() const;

 private:
  Bytes rounded(Bytes bytes) const;

  Bytes granularity_;
  Bytes free_bytes_;
  std::map<Bytes, Bytes> free_;  // offset -> size; no two touch
};

}  // namespace memwall
