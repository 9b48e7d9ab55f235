// PyTorch's caching allocator once more, written to be obviously right instead of
// fast: one ordered map of blocks, and every question answered by walking it. The
// fast one (sim/pytorch_allocator.h) must agree with it at every call.
//
// Independent of it: shares no code, and decides neighbours by address instead of links.
#pragma once

#include <map>

#include "sim/allocator.h"

namespace memwall {

class ReferenceAllocator final : public Allocator {
 public:
  explicit ReferenceAllocator(Bytes capacity) : capacity_(capacity) {}

  std::optional<Address> allocate(Bytes bytes, std::uint16_t stream) override;
  void free(Address address) override;
  const Usage& usage() const override { return usage_; }
  const AllocatorEvents& events() const override { return events_; }
  void set_capacity(Bytes capacity) override { capacity_ = capacity; }

  struct Block {
    Address segment = 0;
    Bytes size = 0, requested = 0;
    std::uint16_t stream = 0;
    bool small_pool = false, in_use = false;
  };
  const std::map<Address, Block>& blocks() const { return blocks_; }

 private:
  std::map<Address, Block>::iterator best_fit(Bytes size, std::uint16_t stream, bool small_pool);
  void release_cached();
  void recount();

  Bytes capacity_;
  Usage usage_;
  AllocatorEvents events_;
  std::map<Address, Block> blocks_;
  Address next_segment_ = Address{1} << 30;
};

}  // namespace memwall
