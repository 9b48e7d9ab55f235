// Told what a caching allocator does besides handing out and taking back; all optional.
#pragma once

#include "sim/memory/allocator.h"

namespace memwall {

class AllocatorObserver {
 public:
  virtual ~AllocatorObserver() = default;
  virtual void on_segment_alloc(Address, Bytes, std::uint16_t /*stream*/) {}
  virtual void on_segment_free(Address, Bytes, std::uint16_t /*stream*/) {}
  virtual void on_segment_map(Address, Bytes, std::uint16_t /*stream*/) {}
  virtual void on_segment_unmap(Address, Bytes, std::uint16_t /*stream*/) {}
  // The retry sequence of a request that the cache could not serve, in the order taken. A request that the first cudaMalloc
  // (or mapping) serves reports none but a garbage collection.
  enum class RetryStep : std::uint8_t {
    garbage_collection,  // old cached blocks freed; bytes: how much. Not told where nothing was freed
    device_refused,      // cudaMalloc (or a mapping) failed, or the limit forbids it; bytes: of what was refused
    release_available,   // oversize blocks freed (max_split_size); bytes: how much. Not told where nothing was freed
    release_cached,      // every wholly free segment freed, counts as a retry; bytes: how much, also 0
    served,              // a try after the first succeeded; bytes: the block before it is split
    out_of_memory        // bytes: the rounded request
  };
  virtual void on_retry_step(RetryStep, Bytes /*bytes*/) {}
};

}  // namespace memwall
