// Hands out memory of one tier, as a real allocator would: with rounding,
// caching and fragmentation. Time is not its business; the engine charges it
// (sim/engine/device_calls.h).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/memory/allocator_settings.h"
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
  std::uint64_t device_mallocs = 0;  // segments obtained (cudaMalloc), or mapped where pages are
  std::uint64_t device_frees = 0;    // segments returned (cudaFree), or unmapped
  std::uint64_t retries = 0;         // allocations that had to flush the cache first
  // Of the first two, the calls for pages of expandable segments, and how many pages they mapped and unmapped.
  std::uint64_t maps = 0, unmaps = 0, pages_mapped = 0, pages_unmapped = 0;
};

class Allocator {
 public:
  virtual ~Allocator() = default;
  // The address, or nothing if it does not fit in the capacity; 0 bytes always fit. REQUIRES: bytes >= 0.
  virtual std::optional<Address> allocate(Bytes bytes, std::uint16_t stream) = 0;
  // REQUIRES: `address` came from allocate and was not freed since.
  virtual void free(Address address) = 0;
  virtual const Usage& usage() const = 0;
  virtual const AllocatorEvents& events() const = 0;
  // From now on at most `capacity` bytes are reserved. May be raised after a failure, to go on.
  virtual void set_capacity(Bytes capacity) = 0;
  // After a failure, to go on: every request is served from now on, whatever the settings limit.
  virtual void lift_limits() { set_capacity(Bytes{1} << 60); }
};

// Counts bytes; nothing is lost to rounding or fragmentation.
std::unique_ptr<Allocator> make_ideal_allocator(Bytes capacity);
// PyTorch's caching allocator with default settings: pools per stream, best fit, splitting, coalescing.
// Source of its rules: c10/cuda/CUDACachingAllocator.cpp; see docs/allocator.md.
std::unique_ptr<Allocator> make_pytorch_allocator(Bytes capacity);
// PyTorch's pinned host allocator: every request rounded up to a power of two, never split.
// `reserve_segment`: bytes pinned ahead in one piece (pinned_reserve_segment_size_mb); 0 = none.
std::unique_ptr<Allocator> make_pinned_allocator(Bytes capacity, Bytes reserve_segment = 0);
// The driver itself, call by call: whole pages of 4 KiB, which go back to the system when they are freed.
std::unique_ptr<Allocator> make_unpooled_pinned_allocator(Bytes capacity);
// The CUDA driver's stream-ordered pool (cudaMallocAsync): sim/memory/cuda_async_allocator.cpp says what is modelled.
std::unique_ptr<Allocator> make_cuda_async_allocator(Bytes capacity);
// A caching allocator that joins free pieces by virtual memory, as GMLake does: sim/memory/stitching_allocator.h.
std::unique_ptr<Allocator> make_stitching_allocator(Bytes capacity);

// The names that make_allocator knows, the default first.
const std::vector<std::string>& allocator_names();

// Throws UsageError: the name is none of those known; the nearest of them is told.
[[noreturn]] void refuse_allocator(const std::string& name, const std::vector<std::string>& known);

// By name; throws UsageError with the nearest valid name. `settings` apply to "pytorch" alone; with the backend
// cudaMallocAsync that is "cuda_async". `device_total`: the device's whole memory, which fractions and the reservations
// of expandable segments refer to; default: the capacity.
std::unique_ptr<Allocator> make_allocator(const std::string& name, Bytes capacity,
                                          const AllocatorSettings& settings = {},
                                          std::optional<Bytes> device_total = std::nullopt);

}  // namespace memwall
