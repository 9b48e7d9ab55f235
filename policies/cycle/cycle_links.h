// How storages leave the device and come back: one path per slower tier, first in first out in each direction.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <vector>

#include "sim/units.h"

namespace memwall {

struct CyclePath {
  double out_rate = 0, in_rate = 0;   // bytes per second of one large copy alone
  Duration out_latency{}, in_latency{};  // of a copy, beside its bytes
  Bytes room = 0;                     // that copies may take in the tier
  bool pinned = false;                // memory of the host, page-locked: sizes are rounded up to powers of two there
  // Of copies that pass through buffers in the host's memory: how fast they leave the device for one, and come from it.
  // 0: there are none.
  double staged_out_rate = 0, staged_in_rate = 0;
  Bytes largest = std::numeric_limits<Bytes>::max();  // storage that may take it

  bool is_staged() const { return staged_out_rate > 0; }
  // What a copy takes of the room. PyTorch's CachingHostAllocator rounds sizes so.
  Bytes held(Bytes bytes) const {
    return pinned ? static_cast<Bytes>(std::bit_ceil(static_cast<std::uint64_t>(bytes))) : bytes;
  }
  // Of sizes spread evenly over their logarithm, how many times their bytes they take on average.
  double rounding() const { return pinned ? 1.39 : 1; }
};

struct CycleLinks {
  std::vector<CyclePath> paths;          // in the order in which they are preferred; at least one
  double total_out = 0, total_in = 0;    // of all paths together, by the links that they share
  double staged_out = 0, staged_in = 0;  // of what leaves the device and comes back to it, where a path is staged
};

}  // namespace memwall
