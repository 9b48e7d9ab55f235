// Of the reference allocator: the state as a whole, set, shown and counted.
#include <algorithm>

#include "tests/support/reference_allocator.h"

namespace memwall {
namespace {

using Use = BlockState::Use;
using Sums = std::array<std::int64_t, 3>;  // by StatisticOf

void add(Sums& sums, bool small, std::int64_t amount) {
  sums[0] += amount;
  sums[small ? 1 : 2] += amount;
}

void move_to(Statistic& statistic, std::int64_t now) {
  const std::int64_t change = now - statistic.current;
  (change > 0 ? statistic.allocated : statistic.freed) += change > 0 ? change : -change;
  statistic.current = now;
  statistic.peak = std::max(statistic.peak, now);
}

void move_to(PoolStatistics& statistics, const Sums& now) {
  for (std::size_t i = 0; i < now.size(); ++i) move_to(statistics[i], now[i]);
}

}  // namespace

void ReferenceAllocator::restore(const std::vector<SegmentState>& segments) {
  for (const SegmentState& state : segments) {
    const Pool pool{state.private_pool, state.small_pool && rules_.pools_by_size};
    segments_[state.address] = {state.size, state.stream, pool, state.small_pool, state.expandable};
    if (state.private_pool > 0) pool_uses_[state.private_pool] = 1;
    for (const BlockState& piece : state.blocks) {
      Block block;
      block.segment = state.address;
      block.size = piece.size;
      block.use = piece.use;
      const bool active = piece.use == Use::in_use || piece.use == Use::pending;
      block.requested = active ? piece.requested : 0;
      blocks_[piece.address] = block;
      if (piece.use == Use::pending) restore_pending(piece, state.small_pool);
    }
    // New segments lie behind, on a multiple of 2 MiB.
    const Address end = state.address + static_cast<Address>(state.size), unit = Address{1} << 21;
    if (end > next_segment_) next_segment_ = (end + unit - 1) / unit * unit;
  }
  recount();
}

// Counts as handed out and freed before; complete_free or a synchronization ends it.
void ReferenceAllocator::restore_pending(const BlockState& block, bool small) {
  held_.push_back(block.address);
  for (const std::size_t pool : {std::size_t{0}, std::size_t{small ? 1u : 2u}}) {
    Statistic &count = statistics_.allocation[pool], &bytes = statistics_.allocated_bytes[pool];
    ++count.allocated, ++count.freed;
    bytes.allocated += block.size, bytes.freed += block.size;
  }
}

std::vector<SegmentState> ReferenceAllocator::segments() const {
  std::vector<SegmentState> states;
  for (const auto& [address, segment] : segments_) {
    SegmentState state;
    state.address = address;
    state.size = segment.size;
    state.stream = segment.stream;
    state.small_pool = segment.small_sized;
    state.expandable = segment.expandable;
    state.private_pool = segment.pool.private_pool;
    for (auto it = blocks_.find(address); it != blocks_.end() && it->second.segment == address; ++it)
      state.blocks.push_back({it->first, it->second.size, it->second.requested, it->second.use});
    states.push_back(std::move(state));
  }
  return states;
}

// Every figure from the blocks as they are now. Called after each step that changes them, so that what changed since
// the last call is what the step allocated or freed.
void ReferenceAllocator::recount() {
  Sums allocation{}, segment{}, active{}, split{};
  Sums allocated_bytes{}, reserved_bytes{}, active_bytes{}, split_bytes{}, requested_bytes{};
  std::int64_t oversize_blocks = 0, oversize_segments = 0;
  usage_ = {};
  for (const auto& [address, s] : segments_) {
    if (!s.expandable || !rules_.mapping_is_no_segment) add(segment, s.small_sized, 1);
    if (!s.expandable && s.size >= settings_.max_split_size) ++oversize_segments;
    for (auto it = blocks_.find(address); it != blocks_.end() && it->second.segment == address; ++it) {
      const Block& block = it->second;
      const bool used = block.use == Use::in_use, pending = block.use == Use::pending;
      if (block.use != Use::unmapped) add(reserved_bytes, s.small_sized, block.size);
      if (used) {
        add(allocation, s.small_sized, 1);
        add(allocated_bytes, s.small_sized, block.size);
        usage_.requested += block.requested;
        if (block.size >= settings_.max_split_size) ++oversize_blocks;
      }
      if (used || (pending && rules_.pending_is_active)) {
        add(active, s.small_sized, 1);
        add(active_bytes, s.small_sized, block.size);
      }
      if (used || (pending && rules_.requested_until_completed)) add(requested_bytes, s.small_sized, block.requested);
      const bool excluded = s.expandable && rules_.expandable_is_never_inactive_split;
      if (block.use == Use::free && block.size < s.size && !excluded) {
        add(split, s.small_sized, 1);
        add(split_bytes, s.small_sized, block.size);
      }
    }
  }
  usage_.allocated = allocated_bytes[0];
  usage_.reserved = reserved_bytes[0];
  move_to(statistics_.allocation, allocation);
  move_to(statistics_.segment, segment);
  move_to(statistics_.active, active);
  move_to(statistics_.inactive_split, split);
  move_to(statistics_.allocated_bytes, allocated_bytes);
  move_to(statistics_.reserved_bytes, reserved_bytes);
  move_to(statistics_.active_bytes, active_bytes);
  move_to(statistics_.inactive_split_bytes, split_bytes);
  move_to(statistics_.requested_bytes, requested_bytes);
  move_to(statistics_.oversize_allocations, oversize_blocks);
  move_to(statistics_.oversize_segments, oversize_segments);
}

}  // namespace memwall
