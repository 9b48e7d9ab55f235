// PyTorch's caching allocator: what it reserves, where it puts a block, when it gives memory back, under every
// setting of PYTORCH_ALLOC_CONF. The rules stand in docs/allocator.md.
// Source: pytorch/pytorch, c10/cuda/CUDACachingAllocator.cpp and c10/core/AllocatorConfig.h.
//
// Nothing here knows time. What the device has finished is asked of a StreamEvents; without one, a block that other
// streams use stays active until complete_free or a synchronization.
// A request of 0 bytes takes nothing and has address 0, as PyTorch gives it a null pointer.
#pragma once

#include <vector>

#include "sim/memory/address_table.h"
#include "sim/memory/allocator.h"
#include "sim/memory/allocator_counters.h"
#include "sim/memory/allocator_observer.h"
#include "sim/memory/allocator_pools.h"
#include "sim/memory/allocator_settings.h"
#include "sim/memory/allocator_statistics.h"
#include "sim/memory/deferred_frees.h"
#include "sim/memory/segment_source.h"
#include "sim/memory/segment_state.h"
#include "sim/memory/stream_events.h"

namespace memwall {

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
  // The two halves of a free as a recording shows them: the block leaves `allocated`, and later `active`. A
  // synchronization (release_cached, the last step of the retry sequence) completes every such free, as it waits for every
  // event.
  void request_free(Address address);
  // Nothing happens where a synchronization was faster. REQUIRES: request_free(address) came before, or a free that
  // no StreamEvents follows.
  void complete_free(Address address);

  const Usage& usage() const override { return counters_.usage(); }
  // Mapping and unmapping pages of expandable segments counts as device calls too.
  const AllocatorEvents& events() const override { return events_; }
  Bytes active_bytes() const { return counters_.active_bytes(); }
  // At most 2^60 bytes count.
  void set_capacity(Bytes capacity) override;
  void lift_limits() override;
  // The device's whole memory: what fractions refer to, and 9/8 of it is what an expandable segment reserves unless the
  // settings say less (of at most 2^50 bytes, so that address space suffices where capacity is meant to be unlimited).
  // Default: the capacity given at construction.
  void set_device_total(Bytes total);
  void observe(AllocatorObserver* observer) { observer_ = observer; }  // not owned; null = none

  // Gives every segment without a block in use back to the device (torch.cuda.empty_cache).
  void release_cached();

  // Requests go to the private pool `pool` (of a CUDA graph, or torch.cuda.MemPool) until end_pool. `streams`: only
  // requests on these; empty = all. Of several that take a request, the one begun last serves it.
  // REQUIRES: pool > 0, not begun already; begins and ends nest.
  void begin_pool(std::uint32_t pool, std::vector<std::uint16_t> streams = {});
  void end_pool(std::uint32_t pool);
  // Ends one of its uses; each begin_pool is one, as several graphs may share a pool. Where none is left,
  // release_cached may free its memory.
  void release_pool(std::uint32_t pool);
  // While a graph is captured no event is recorded or asked for, and of the cache only private pools that nobody uses
  // are released. Its end frees the blocks that only the graph used. A graph has a pool, too: begin_pool. (Before May
  // 2026, PyTorch took a MemPool's begin_pool for a capture as well.)
  void begin_capture();
  void end_capture();

  // Starts from this state. A private pool counts as used once, until release_pool.
  // REQUIRES: nothing was allocated yet; segments do not overlap.
  void restore(const std::vector<SegmentState>& segments);
  // Every segment with its blocks, by address. For checks and drawings; costs a sort.
  std::vector<SegmentState> segments() const;
  AllocatorStatistics statistics() const;

 private:
  static constexpr std::uint32_t kNone = 0xffffffff;
  using Use = BlockState::Use;
  using RetryStep = AllocatorObserver::RetryStep;

  struct Block {
    Address address = 0;
    Bytes size = 0, requested = 0;                 // requested: of blocks in use or pending
    std::uint32_t previous = kNone, next = kNone;  // neighbours in the segment
    std::uint32_t pool = 0;                        // index into pools_
    std::uint32_t expandable = kNone;              // index into expandable_, or kNone: from cudaMalloc
    Use use = Use::free;
    bool large = false;  // pool
    bool exists = false;
    bool foreign = false;  // used on other streams
    bool listed = false;   // in by_address_
  };
  struct ExpandableSegment {
    Address address = 0;
    Bytes size = 0, page = 0;
  };

  // pytorch_allocator.cpp: calls that the cache serves.
  void derive_rules();
  void update_plain();
  std::optional<Address> allocate_by_rules(Bytes bytes, std::uint16_t stream);
  std::uint32_t block_in_use(Address address) const;
  std::uint32_t new_number();
  std::uint32_t new_block(const Block& block);
  void list(std::uint32_t id);
  void drop_block(std::uint32_t id);
  void insert_free(std::uint32_t id);
  void erase_free(std::uint32_t id);
  std::uint32_t take_best_by_rules(std::uint32_t pool_number, Bytes size);
  bool may_serve(Bytes size, Bytes block) const;
  Address hand_out(std::uint32_t id, Bytes size, Bytes requested);
  std::uint32_t split_off(std::uint32_t id, Bytes size);
  void absorb_next(std::uint32_t id);
  void make_free(std::uint32_t id);
  void hold_back(std::uint32_t id);
  void finish_pending(std::uint32_t id);
  void finish_pending(const std::vector<std::uint32_t>& ids);
  void process_events();

  // pytorch_retries.cpp: requests that it cannot serve.
  std::uint32_t allocate_with_retries(Bytes size, std::uint32_t pool_number);
  std::uint32_t try_device(Bytes size, std::uint32_t pool_number);
  std::uint32_t obtain_segment(Bytes size, std::uint32_t pool_number);
  void collect_garbage();
  bool release_available(Bytes size, std::uint32_t pool_number);
  void release_all();
  void release_unused_pools();
  void release_pools(const std::vector<std::uint32_t>& numbers);
  void give_back(std::uint32_t id);
  bool whole_segment(const Block& block) const;
  void tell(RetryStep retry_step, Bytes bytes);

  // pytorch_expandable.cpp: segments that grow.
  std::uint32_t obtain_expandable(Bytes size, std::uint32_t pool_number);
  std::uint32_t find_expandable(Bytes size, std::uint32_t pool_number) const;
  Bytes address_space(Bytes page) const;
  std::uint32_t new_expandable(Bytes size, std::uint32_t pool_number);
  bool has_room(std::uint32_t id, Bytes size) const;
  std::uint32_t map_pages(std::uint32_t id, Bytes bytes);
  void unmap_pages(std::uint32_t id);
  std::uint32_t become_unmapped(std::uint32_t id);
  void drop_if_unmapped(std::uint32_t id);

  // pytorch_state.cpp: whole states in and out.
  void restore_segment(const SegmentState& segment);
  void restore_block(std::uint32_t id, bool split);
  SegmentState segment_state(std::uint32_t first) const;
  std::optional<Address> fresh_addresses(Bytes bytes);

  Bytes capacity_;
  Bytes device_total_;
  SegmentSource* source_;
  AllocatorSettings settings_;
  AllocatorObserver* observer_ = nullptr;

  // What follows from the settings, so that the default path asks as little as possible.
  Bytes limit_ = AllocatorSettings::kNoLimit;        // per_process_memory_fraction of the device
  bool lifted_ = false;  // neither the limit nor an expandable segment's address space holds any more
  Bytes split_below_ = AllocatorSettings::kNoLimit;  // requests of this size or more take a whole block
  Bytes least_rest_[2] = {0, 0};                     // what is worth splitting off, of small and large blocks
  bool rounds_plainly_ = true;                       // no roundup_power2_divisions
  bool searches_plainly_ = true;                     // the best fit is the smallest block that is large enough
  bool plain_ = true;  // both, no private pool takes requests, and no free waits for a stream: the default path
  bool collects_garbage_ = false;
  std::uint64_t large_searches_ = 0;         // of the default large pools; only if collects_garbage_
  std::vector<std::uint64_t> cached_since_;  // large_searches_ when the block became free; by block, as above

  AllocatorEvents events_;
  AllocatorCounters counters_;
  AllocatorPools pools_;
  std::vector<Block> blocks_;
  std::vector<std::uint32_t> unused_;  // numbers of dropped blocks
  AddressTable by_address_;            // every block that was handed out once and still begins there
  std::vector<ExpandableSegment> expandable_;
  DeferredFrees deferred_;
  std::vector<std::uint32_t> ready_;  // of deferred_; kept for its capacity
  std::uint32_t captures_ = 0;        // underway
  Address next_segment_ = Address{1} << 30;
};

}  // namespace memwall
