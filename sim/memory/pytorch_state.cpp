// Whole states of PytorchAllocator, in and out.
#include <algorithm>
#include <cassert>

#include "sim/memory/pytorch_allocator.h"
#include "sim/memory/pytorch_constants.h"

namespace memwall {

// Addresses that stand for no memory: ascending, never used twice; nothing when they are used up.
std::optional<Address> PytorchAllocator::fresh_addresses(Bytes bytes) {
  if (next_segment_ + static_cast<Address>(bytes) < next_segment_) return std::nullopt;
  next_segment_ += static_cast<Address>(bytes);
  return next_segment_ - static_cast<Address>(bytes);
}

void PytorchAllocator::restore(const std::vector<SegmentState>& segments) {
  assert(blocks_.empty());
  for (const SegmentState& segment : segments) restore_segment(segment);
}

void PytorchAllocator::restore_segment(const SegmentState& segment) {
  if (segment.private_pool > 0) pools_.adopt(segment.private_pool);
  const std::uint32_t pool_number = pools_.find(segment.private_pool, segment.stream, !segment.small_pool);
  if (segment.expandable) {
    const Bytes page = segment.small_pool ? kSmallSegment : settings_.large_segment_size;
    expandable_.push_back({segment.address, segment.size, page});
    derive_rules();
  } else {
    counters_.reserve(!segment.small_pool, segment.size);
    counters_.change_segments(!segment.small_pool, 1);
    if (segment.size >= settings_.max_split_size) counters_.change_oversize_segments(1);
  }
  std::uint32_t previous = kNone;
  for (const BlockState& state : segment.blocks) {
    Block block;
    block.address = state.address;
    block.size = state.size;
    block.requested = state.requested;
    block.previous = previous;
    block.pool = pool_number;
    block.expandable = segment.expandable ? static_cast<std::uint32_t>(expandable_.size() - 1) : kNone;
    block.use = state.use;
    block.large = !segment.small_pool;
    const std::uint32_t id = new_block(block);
    if (previous != kNone) blocks_[previous].next = id;
    previous = id;
    restore_block(id, segment.blocks.size() > 1);
  }
  // New segments lie behind every restored one, on a multiple of the largest quantum.
  const Address end = segment.address + static_cast<Address>(segment.size);
  const auto quantum = static_cast<Address>(kSegmentQuantum);
  if (end > next_segment_) next_segment_ = (end + quantum - 1) / quantum * quantum;
}

void PytorchAllocator::restore_block(std::uint32_t id, bool split) {
  const Block& block = blocks_[id];
  AllocatorPools::Pool& pool = pools_[block.pool];
  if (block.use == Use::unmapped) {
    pool.unmapped.emplace(block.address, id);
    return;
  }
  if (block.expandable != kNone) {
    counters_.reserve(pool.large, block.size);
  }
  if (block.use == Use::free) {
    insert_free(id);
    if (split && block.expandable == kNone) counters_.change_inactive(pool.large, 1, block.size);
    return;
  }
  list(id);
  if (block.use == Use::pending) {
    counters_.add_waiting(pool.large, block.size, block.requested);
    return deferred_.hold(id);
  }
  counters_.hand_out(pool.large, block.size, block.requested);
  if (block.size >= settings_.max_split_size) counters_.change_oversize_allocations(1);
}

SegmentState PytorchAllocator::segment_state(std::uint32_t first) const {
  const AllocatorPools::Pool& pool = pools_[blocks_[first].pool];
  SegmentState segment;
  segment.address = blocks_[first].address;
  segment.stream = pool.stream;
  segment.small_pool = !pool.large;
  segment.expandable = blocks_[first].expandable != kNone;
  segment.private_pool = pool.private_pool;
  for (std::uint32_t id = first; id != kNone; id = blocks_[id].next) {
    const Block& block = blocks_[id];
    const bool demanded = block.use == Use::in_use || block.use == Use::pending;
    segment.size += block.size;
    segment.blocks.push_back({block.address, block.size, demanded ? block.requested : 0, block.use});
  }
  return segment;
}

std::vector<SegmentState> PytorchAllocator::segments() const {
  std::vector<SegmentState> states;
  for (std::uint32_t id = 0; id < blocks_.size(); ++id)
    if (blocks_[id].exists && blocks_[id].previous == kNone) states.push_back(segment_state(id));
  std::sort(states.begin(), states.end(),
            [](const SegmentState& a, const SegmentState& b) { return a.address < b.address; });
  return states;
}

AllocatorStatistics PytorchAllocator::statistics() const {
  AllocatorStatistics statistics = counters_.statistics();
  statistics.num_alloc_retries = static_cast<std::int64_t>(events_.retries);
  statistics.num_device_alloc = static_cast<std::int64_t>(events_.device_mallocs);
  statistics.num_device_free = static_cast<std::int64_t>(events_.device_frees);
  if (settings_.max_split_size != AllocatorSettings::kNoLimit) statistics.max_split_size = settings_.max_split_size;
  return statistics;
}

}  // namespace memwall
