// Where the host memory and the room in the file of a schedule are, decided before it runs: timed passes
// must not wait for the driver to lock pages, nor may memory be used again while a copy still works on it.
//
// A block goes to another storage only if every use of the former one is ordered before the first use of the new one,
// by streams, events and waits of the schedule (happened_before.h). PyTorch asks the driver's events the same question
// while it runs. Page-locked blocks are powers of two, as PyTorch's.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/trace/trace.h"
#include "validate/replay/backend.h"

namespace memwall {

// A piece of host memory or of the file.
struct FixedBlock {
  PlaceClass place_class = PlaceClass::pinned;
  Bytes bytes = 0;
};

// How much of a place a schedule takes, as an allocator would count it.
struct PlaceUse {
  Bytes allocated = 0;  // at worst, alive at once
  Bytes reserved = 0;   // all blocks
};

struct FixedPlaces {
  static constexpr std::uint32_t kNone = 0xffffffff;
  std::vector<std::uint32_t> block_of;  // by storage; kNone: on the device, of 0 bytes, or never used
  std::vector<FixedBlock> blocks;
  PlaceUse host, file;
};

// REQUIRES: check(schedule) and not_executable(schedule) are empty.
FixedPlaces plan_fixed_places(const Trace& schedule);

}  // namespace memwall
