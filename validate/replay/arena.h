// The device memory of the host back end: one piece of DRAM of stated size, out of which segments are given.
#pragma once

#include <cstddef>
#include <mutex>

#include "sim/memory/pytorch_allocator.h"
#include "validate/replay/first_fit.h"
#include "validate/replay/mapped_memory.h"

namespace memwall {

// Addresses are real pointers. May be used from several threads.
class Arena final : public SegmentSource {
 public:
  // All pages are present when it returns. Throws std::bad_alloc.
  explicit Arena(Bytes capacity);

  std::optional<Address> obtain(Bytes bytes) override;
  void give_back(Address address, Bytes bytes) override;

  Bytes capacity() const { return capacity_; }
  Bytes free_bytes() const;

 private:
  static constexpr Bytes kAlignment = 512;

  Bytes capacity_;
  MappedMemory memory_;
  mutable std::mutex mutex_;
  FirstFit room_;
};

}  // namespace memwall
