// The segments of a caching allocator with their blocks: for start states, checks and drawings.
#pragma once

#include <vector>

#include "sim/memory/allocator.h"

namespace memwall {

// A piece of a segment.
struct BlockState {
  enum class Use : std::uint8_t { free, unmapped, in_use, pending };  // pending: freed, a stream may still use it
  Address address = 0;
  Bytes size = 0;
  Bytes requested = 0;  // of blocks in use or pending
  Use use = Use::free;
  bool operator==(const BlockState&) const = default;
};

struct SegmentState {
  Address address = 0;
  Bytes size = 0;  // of an expandable one: the whole reservation, unmapped ranges included
  std::uint16_t stream = 0;
  bool small_pool = false, expandable = false;
  std::uint32_t private_pool = 0;  // 0 = the default pools
  std::vector<BlockState> blocks;  // ascending, covering the segment without gaps
  bool operator==(const SegmentState&) const = default;
};

}  // namespace memwall
