// PyTorch's caching allocator once more, written to be obviously right instead of fast: one ordered map of segments,
// one of blocks, and every question answered by walking them. The fast one (sim/memory/pytorch_allocator.h) must agree with
// it at every call; what the calls mean is said there.
//
// Independent of it: shares no code, finds neighbours by address instead of links, and counts every statistic anew.
// Each rule can be altered (reference_allocator_rules.h), to see that a comparison would notice.
#pragma once

#include <deque>
#include <map>
#include <set>

#include "sim/memory/pytorch_allocator.h"
#include "tests/support/reference_allocator_rules.h"

namespace memwall {

class ReferenceAllocator final : public Allocator {
 public:
  explicit ReferenceAllocator(Bytes capacity, SegmentSource* source = nullptr, const AllocatorSettings& settings = {},
                              StreamEvents* events = nullptr, const ReferenceRules& rules = {});

  std::optional<Address> allocate(Bytes bytes, std::uint16_t stream) override;
  void free(Address address) override;
  void record_stream(Address address, std::uint16_t stream);
  void request_free(Address address);
  void complete_free(Address address);
  // Freed, and nobody but the caller will say when it can be handed out again.
  bool awaits_complete_free(Address address) const;

  const Usage& usage() const override { return usage_; }
  const AllocatorEvents& events() const override { return device_calls_; }
  void set_capacity(Bytes capacity) override { capacity_ = capacity; }
  void set_device_total(Bytes total) { device_total_ = total; }
  void observe(AllocatorObserver* observer) { observer_ = observer; }

  void release_cached();
  void begin_pool(std::uint32_t pool, std::vector<std::uint16_t> streams = {});
  void end_pool(std::uint32_t pool);
  void release_pool(std::uint32_t pool);
  void begin_capture() { ++captures_; }
  void end_capture();

  void restore(const std::vector<SegmentState>& segments);
  std::vector<SegmentState> segments() const;
  const AllocatorStatistics& statistics() const { return statistics_; }

 private:
  struct Pool {
    std::uint32_t private_pool = 0;
    bool small = false;
    auto operator<=>(const Pool&) const = default;
  };
  struct Segment {
    Bytes size = 0;
    std::uint16_t stream = 0;
    Pool pool;
    bool small_sized = false, expandable = false;
  };
  struct Block {
    Address segment = 0;
    Bytes size = 0, requested = 0;
    BlockState::Use use = BlockState::Use::free;
    std::set<std::uint16_t> streams;          // that use it besides its own
    std::set<std::uint16_t> capture_streams;  // of these, recorded during a capture
    std::size_t events = 0;                   // that have not completed
    std::uint64_t cached_at = 0;              // searches of its pool when it became free
  };
  using Blocks = std::map<Address, Block>;
  struct FreeBlock {  // in the order in which PyTorch keeps them
    std::uint16_t stream = 0;
    Bytes size = 0;
    Address address = 0;
    auto operator<=>(const FreeBlock&) const = default;
  };
  struct Request {
    Bytes asked = 0, size = 0, segment = 0;
    Pool pool;
    std::uint16_t stream = 0;
  };
  struct ActivePool {
    std::uint32_t pool = 0;
    std::vector<std::uint16_t> streams;
  };
  struct Waiting {
    std::uint64_t event = 0;
    Address block = 0;
  };

  // Sizes and pools.
  Bytes rounded(Bytes bytes) const;
  Bytes divisions_of(Bytes bytes) const;
  Request request(Bytes bytes, std::uint16_t stream) const;
  std::uint32_t private_pool_of(std::uint16_t stream) const;
  Bytes page_of(const Segment& segment) const;
  bool limited() const;
  Bytes limit() const;
  bool collects_garbage() const;
  Bytes reserved() const { return statistics_.reserved_bytes[0].current; }

  // Searching and handing out.
  std::vector<FreeBlock> free_blocks(const Pool& pool) const;
  std::vector<FreeBlock> candidates(const Request& request) const;
  Bytes room(const FreeBlock& block) const;
  const Segment& segment_of(Address block) const { return segments_.at(blocks_.at(block).segment); }
  bool whole(Address block) const { return blocks_.at(block).size == segment_of(block).size; }
  std::optional<Address> find_cached(const Request& request);
  bool splits(const Block& block, const Request& request) const;
  Address hand_out(Address address, const Request& request);

  // The ladder.
  std::optional<Address> allocate_with_retries(const Request& request);
  std::optional<Address> try_release_available(const Request& request);
  std::optional<Address> try_release_cached(const Request& request);
  std::optional<Address> obtain_again(const Request& request);
  void retry_step(AllocatorObserver::RetryStep retry_step, Bytes bytes);
  std::nullopt_t refused(Bytes bytes);

  // Segments.
  std::optional<Address> obtain(const Request& request);
  std::optional<Address> obtain_expandable(Request request);
  std::optional<Address> room_for(const Request& request) const;
  bool run_suffices(Address start, Bytes size) const;
  Bytes address_space(const Segment& segment) const;
  std::optional<Address> reserve_range(const Request& request);
  std::optional<Address> map(Address address, Bytes bytes);
  void unmap(Address address);
  void give_back(Address address);
  void release_everything();
  void release_unused_pools();
  void release(const Pool& pool);
  bool release_available(const Request& request);
  std::vector<FreeBlock> garbage() const;
  void collect_garbage();

  // Frees.
  Address merge(Address address);
  void finish(Address address);
  void record_events(Address address);
  void free_captured();
  void record_deferred();
  void process_events();
  void synchronize();
  void restore_pending(const BlockState& block, bool small);
  void recount();

  Bytes capacity_;
  Bytes device_total_;
  SegmentSource* source_;
  AllocatorSettings settings_;
  StreamEvents* stream_events_;
  ReferenceRules rules_;
  AllocatorObserver* observer_ = nullptr;
  std::map<Address, Segment> segments_;
  Blocks blocks_;
  std::map<std::uint16_t, std::deque<Waiting>> waiting_;  // by stream
  std::vector<Address> deferred_;                         // freed during a capture; their events come later
  std::vector<Address> held_;             // complete_free or a synchronization frees them, in this order
  std::vector<ActivePool> active_pools_;  // in the order begun
  std::map<std::uint32_t, int> pool_uses_;
  std::map<Pool, std::uint64_t> searches_;
  int captures_ = 0;
  Address next_segment_ = Address{1} << 30;
  Usage usage_;
  AllocatorEvents device_calls_;
  AllocatorStatistics statistics_;
};

}  // namespace memwall
