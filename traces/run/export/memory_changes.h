// What came into a tier's memory and what left it, one after the other, in the order in which the allocator was asked.
//
// A run keeps when storages are in a tier; many come and go in one instant. What comes is in order there. What leaves
// at the same instant is put between by the order of the program: at equal times a device goes before a host, a host's
// calls follow the ops.
#pragma once

#include <cstdint>
#include <vector>

#include "traces/run/run.h"

namespace memwall {

struct MemoryChange {
  Time time{};
  Time asked{};  // of a free: when the host asked for it; later than that where another stream used the storage
  StorageId storage = kNoStorage;
  OpId op = kNoOp;  // the alloc or free; kNoOp: it was there before the first op, or a pager moved it
  bool comes = false;
};

// REQUIRES: the run was recorded (Run::residency); tier is one of run.machine's.
std::vector<MemoryChange> memory_changes(const Run& run, std::uint16_t tier);

}  // namespace memwall
