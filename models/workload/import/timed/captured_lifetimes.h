// Storages from a capture's allocator events: who is born, who dies, who was there before.
// Internal to the importers of timed captures.
#pragma once

#include <cstdint>
#include <vector>

#include "models/workload/import/timed/timed_capture.h"

namespace memwall {

struct CapturedStorage {
  Bytes bytes = 0;
  bool preexisting = false;
};

struct CapturedLifetimes {
  std::vector<CapturedStorage> storages;  // preexisting ones may stand anywhere in the list
  std::vector<std::uint32_t> storage_of;  // per memory event; kNoIndex for those of the host or of 0 bytes
  Bytes untracked = 0;                    // held at the first event, and not seen to be freed
  Bytes reserved = 0;                     // by the allocator at the first event, 0 = unknown
  std::uint64_t preexisting = 0;
  std::uint64_t without_address = 0;  // matched by size
  std::uint64_t replaced = 0;         // allocations at an address that was still in use
  std::uint64_t resized = 0;          // frees of another size than was allocated
};

CapturedLifetimes find_lifetimes(const TimedCapture& capture);

}  // namespace memwall
