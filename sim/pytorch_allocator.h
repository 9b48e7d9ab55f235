// PyTorch's caching allocator: what it reserves, where it puts a block, when it gives memory back, under every
// setting of PYTORCH_ALLOC_CONF. The rules stand in docs/allocator.md.
// Source: pytorch/pytorch, c10/cuda/CUDACachingAllocator.cpp and c10/core/AllocatorConfig.h.
//
// Nothing here knows time. What the device has finished is asked of a StreamEvents; without one, a block that other
// streams use stays active until complete_free or a synchronization.
// A request of 0 bytes takes nothing and has address 0, as PyTorch gives it a null pointer.
#pragma once

#include <vector>

#include "sim/address_table.h"
#include "sim/allocator.h"
#include "sim/allocator_settings.h"
#include "sim/allocator_statistics.h"
#include "sim/free_blocks.h"

namespace memwall {

// Where segments come from when they are real memory, or when a recording says where they were.
class SegmentSource {
 public:
  virtual ~SegmentSource() = default;
  // The address, a multiple of 512 and not 0, or nothing if the device has no such piece.
  virtual std::optional<Address> obtain(Bytes bytes) = 0;
  // REQUIRES: obtain(bytes) gave `address`.
  virtual void give_back(Address address, Bytes bytes) = 0;
  // The address of a range for an expandable segment, without memory yet. A source of real memory that cannot map
  // pages returns nothing, and requests then fail.
  virtual std::optional<Address> reserve(Bytes) { return std::nullopt; }
};

// CUDA events, for blocks that other streams use.
class StreamEvents {
 public:
  virtual ~StreamEvents() = default;
  // Marks the present end of `stream`.
  virtual std::uint64_t record(std::uint16_t stream) = 0;
  virtual bool complete(std::uint64_t event) = 0;
  virtual void synchronize(std::uint64_t event) = 0;
};

// Told what the allocator does besides handing out and taking back; all optional.
class AllocatorObserver {
 public:
  virtual ~AllocatorObserver() = default;
  virtual void on_segment_alloc(Address, Bytes, std::uint16_t /*stream*/) {}
  virtual void on_segment_free(Address, Bytes, std::uint16_t /*stream*/) {}
  virtual void on_segment_map(Address, Bytes, std::uint16_t /*stream*/) {}
  virtual void on_segment_unmap(Address, Bytes, std::uint16_t /*stream*/) {}
  // The rungs of a request that the cache could not serve, in the order taken. `bytes`: of the segment refused, or
  // what the rung gave back to the device.
  enum class Rung : std::uint8_t {
    garbage_collection,  // old cached blocks freed
    device_refused,      // cudaMalloc (or a mapping) failed, or the limit forbids it
    release_available,   // oversize blocks freed (max_split_size)
    release_cached,      // every wholly free segment freed; counts as a retry
    served,              // a try after the first succeeded
    out_of_memory
  };
  virtual void on_rung(Rung, Bytes /*bytes*/) {}
};

// A piece of a segment, for start states and views.
struct BlockState {
  enum class Use : std::uint8_t { free, unmapped, in_use, pending };  // pending: freed, a stream may still use it
  Address address = 0;
  Bytes size = 0;
  Bytes requested = 0;  // of blocks in use or pending
  Use use = Use::free;
};

struct SegmentState {
  Address address = 0;
  Bytes size = 0;  // of an expandable one: the whole reservation, unmapped ranges included
  std::uint16_t stream = 0;
  bool small_pool = false, expandable = false;
  std::uint32_t private_pool = 0;  // 0 = the default pools
  std::vector<BlockState> blocks;  // ascending, covering the segment without gaps
};

class PytorchAllocator final : public Allocator {
 public:
  // `capacity`: what the device gives at most. `source`, `events`: not owned; null = addresses that stand for no
  // memory, ascending and never used twice; null = see above.
  explicit PytorchAllocator(Bytes capacity, SegmentSource* source = nullptr, const AllocatorSettings& settings = {},
                            StreamEvents* events = nullptr);

  std::optional<Address> allocate(Bytes bytes, std::uint16_t stream) override;
  // Real free at once, unless other streams were recorded: then events are recorded on them, and the block is reused
  // only after a later allocate finds them complete.
  void free(Address address) override;
  // `stream` uses the block too. No-op if it is the stream that it was allocated on. REQUIRES: in use.
  void record_stream(Address address, std::uint16_t stream);
  // The two halves of a free as a recording shows them: the block leaves `allocated`, and later `active`.
  void request_free(Address address);
  // REQUIRES: request_free(address) came before.
  void complete_free(Address address);

  const Usage& usage() const override { return usage_; }
  const AllocatorEvents& events() const override { return events_; }
  void set_capacity(Bytes capacity) override { capacity_ = capacity; }
  // The device's whole memory: what fractions refer to, and 9/8 of it is what an expandable segment reserves.
  // Default: the capacity given at construction.
  void set_device_total(Bytes total) { device_total_ = total; }
  void observe(AllocatorObserver* observer) { observer_ = observer; }  // not owned; null = none

  // Gives every segment without a block in use back to the device (torch.cuda.empty_cache).
  void release_cached();

  // Requests go to the private pool `pool` (of a CUDA graph, or torch.cuda.MemPool) until end_pool. `streams`: only
  // requests on these; empty = all. REQUIRES: pool > 0; begins and ends nest.
  void begin_pool(std::uint32_t pool, std::vector<std::uint16_t> streams = {});
  void end_pool(std::uint32_t pool);
  // Nobody uses the pool any more: release_cached may free it now.
  void release_pool(std::uint32_t pool);
  // While a graph is captured no event is recorded or asked for, and the cache is not released.
  void begin_capture();
  void end_capture();

  // Starts from this state. REQUIRES: nothing was allocated yet; segments do not overlap.
  void restore(const std::vector<SegmentState>& segments);
  // Every segment with its blocks, by address. For checks and drawings; costs a sort.
  std::vector<SegmentState> segments() const;
  AllocatorStatistics statistics() const;

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
  Bytes device_total_;
  SegmentSource* source_;
  AllocatorSettings settings_;
  StreamEvents* stream_events_;
  AllocatorObserver* observer_ = nullptr;
  Usage usage_;
  AllocatorEvents events_;
  std::vector<FreeBlocks> pools_;
  std::vector<Block> blocks_;
  std::vector<std::uint32_t> unused_;  // numbers of dropped blocks
  AddressTable by_address_;            // every block, free or in use
  Address next_segment_ = Address{1} << 30;
};

}  // namespace memwall
