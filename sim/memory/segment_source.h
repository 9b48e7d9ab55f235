// Where a caching allocator gets its segments when they are real memory, or when a recording says where they were.
#pragma once

#include <optional>

#include "sim/memory/allocator.h"

namespace memwall {

class SegmentSource {
 public:
  virtual ~SegmentSource() = default;
  // Called where PyTorch calls cudaMalloc, after every check of limits: the address, a multiple of 512 and not 0, or
  // nothing if the device has no such piece.
  virtual std::optional<Address> obtain(Bytes bytes) = 0;
  // REQUIRES: obtain(bytes) gave `address`.
  virtual void give_back(Address address, Bytes bytes) = 0;
  // Called where PyTorch reserves address space for an expandable segment, once per segment: when the first request of
  // a pool and stream finds no room in the segments there are. `bytes`: 9/8 of the device, in whole pages; no memory
  // yet. Mapping and unmapping pages asks the source nothing. A source of real memory that cannot map pages returns
  // nothing, and requests then fail.
  virtual std::optional<Address> reserve(Bytes) { return std::nullopt; }
  // The range is no longer used. REQUIRES: reserve(bytes) gave `address`.
  virtual void unreserve(Address /*address*/, Bytes /*bytes*/) {}
};

}  // namespace memwall
