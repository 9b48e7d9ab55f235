// Hands out memory of one tier, as a real allocator would: with rounding,
// caching and fragmentation. Time is not its business; the engine charges it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "sim/units.h"

namespace memwall {

using Address = std::uint64_t;

// How much a tier holds. All in bytes.
struct Usage {
  Bytes allocated = 0;  // blocks in use, after rounding
  Bytes requested = 0;  // the same blocks, before rounding
  Bytes reserved = 0;   // obtained from the device, cached blocks included
};

struct AllocatorEvents {
  std::uint64_t device_mallocs = 0;  // segments obtained (cudaMalloc)
  std::uint64_t device_frees = 0;    // segments returned (cudaFree)
  std::uint64_t retries = 0;         // allocations that had to flush the cache first
};

class Allocator {
 public:
  virtual ~Allocator() = default;
  // The address, or nothing if it does not fit in the capacity. REQUIRES: bytes >= 0.
  virtual std::optional<Address> allocate(Bytes bytes, std::uint16_t stream) = 0;
  // REQUIRES: `address` came from allocate and was not freed since.
  virtual void free(Address address) = 0;
  virtual const Usage& usage() const = 0;
  virtual const AllocatorEvents& events() const = 0;
  // From now on at most `capacity` bytes are reserved. May be raised after a failure, to go on.
  virtual void set_capacity(Bytes capacity) = 0;
};

// Counts bytes; nothing is lost to rounding or fragmentation.
std::unique_ptr<Allocator> make_ideal_allocator(Bytes capacity);
// PyTorch's caching allocator: pools per stream, best fit, splitting, coalescing.
// Source of its rules: c10/cuda/CUDACachingAllocator.cpp; see docs/allocator.md.
std::unique_ptr<Allocator> make_pytorch_allocator(Bytes capacity);
// PyTorch's pinned host allocator: every request rounded up to a power of two, never split.
std::unique_ptr<Allocator> make_pinned_allocator(Bytes capacity);

// By name ("ideal", "pytorch"); throws UsageError with the nearest valid name.
std::unique_ptr<Allocator> make_allocator(const std::string& name, Bytes capacity);

}  // namespace memwall
