// PyTorch's caching allocator with its default settings: what it reserves, where
// it puts a block, and when it gives memory back.
//
// Rules (source: pytorch/pytorch, c10/cuda/CUDACachingAllocator.cpp and AllocatorConfig.h):
// - a request is rounded up to 512 bytes; up to 1 MiB it is served from 2 MiB segments (small pool),
//   under 10 MiB from 20 MiB segments, above from a segment of its own, rounded up to 2 MiB;
// - free blocks are kept per pool and stream; the best fit wins, of equals the lowest address;
// - what remains is split off from 512 bytes on in the small pool, above 1 MiB in the large one;
// - a freed block joins its free neighbours in its segment;
// - if the device refuses a segment, every wholly free segment goes back and one more try is made.
//
// Not modelled yet: settings of PYTORCH_ALLOC_CONF, blocks that other streams still use
// (record_stream), private pools of CUDA graphs. Segments get ascending addresses that are never used
// twice; a real driver's order differs, which changes placements and, rarely, reserved bytes.
// A request of 0 bytes takes nothing and has address 0, as PyTorch gives it a null pointer.
#pragma once

#include <vector>

#include "sim/address_table.h"
#include "sim/allocator.h"
#include "sim/free_blocks.h"

namespace memwall {

// Where segments come from when they are real memory: the driver of a device (cudaMalloc, cudaFree).
class SegmentSource {
 public:
  virtual ~SegmentSource() = default;
  // The address, a multiple of 512 and not 0, or nothing if the device has no such piece.
  virtual std::optional<Address> obtain(Bytes bytes) = 0;
  // REQUIRES: obtain(bytes) gave `address`.
  virtual void give_back(Address address, Bytes bytes) = 0;
};

class PytorchAllocator final : public Allocator {
 public:
  // `source`: not owned; null = addresses that stand for no memory.
  explicit PytorchAllocator(Bytes capacity, SegmentSource* source = nullptr) : capacity_(capacity), source_(source) {}

  std::optional<Address> allocate(Bytes bytes, std::uint16_t stream) override;
  void free(Address address) override;
  const Usage& usage() const override { return usage_; }
  const AllocatorEvents& events() const override { return events_; }
  void set_capacity(Bytes capacity) override { capacity_ = capacity; }

  // Gives every segment without a block in use back to the device (torch.cuda.empty_cache).
  void release_cached();

  struct BlockView {
    Address segment = 0;  // address of the segment's first block
    Address address = 0;
    Bytes size = 0;
    Bytes requested = 0;  // 0 where free
    std::uint16_t stream = 0;
    bool small_pool = false;
    bool in_use = false;
  };
  // Every block, by address. For tests and drawings; costs a sort.
  std::vector<BlockView> blocks() const;

 private:
  static constexpr std::uint32_t kNone = 0xffffffff;

  struct Block {
    Address address = 0;
    Bytes size = 0, requested = 0;
    std::uint32_t previous = kNone, next = kNone;  // neighbours in the segment
    std::uint32_t pool = 0;                        // index into pools_
    bool in_use = false, exists = false;
  };

  // Pool number: 2 * stream for the small one, 2 * stream + 1 for the large one.
  FreeBlocks& pool(std::uint32_t number);
  std::uint32_t new_block(const Block& block);
  void drop_block(std::uint32_t id);
  std::uint32_t obtain_segment(Bytes size, std::uint32_t pool_number);
  std::optional<Address> segment_address(Bytes size);
  void split(std::uint32_t id, Bytes size);
  std::uint32_t absorb(std::uint32_t low, std::uint32_t high);
  void release_pool(FreeBlocks& pool);

  Bytes capacity_;
  SegmentSource* source_;
  Usage usage_;
  AllocatorEvents events_;
  std::vector<FreeBlocks> pools_;
  std::vector<Block> blocks_;
  std::vector<std::uint32_t> unused_;  // numbers of dropped blocks
  AddressTable by_address_;            // every block, free or in use
  Address next_segment_ = Address{1} << 30;
};

}  // namespace memwall
