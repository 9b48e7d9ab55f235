#include "sim/memory/pytorch_allocator.h"

#include <algorithm>
#include <cassert>

#include "sim/memory/pytorch_constants.h"

namespace memwall {

PytorchAllocator::PytorchAllocator(Bytes capacity, SegmentSource* source, const AllocatorSettings& settings,
                                   StreamEvents* events)
    : capacity_(std::min(capacity, FreeBlocks::kLargest)),
      device_total_(capacity_),
      source_(source),
      settings_(settings),
      deferred_(events) {
  derive_rules();
}

void PytorchAllocator::set_capacity(Bytes capacity) { capacity_ = std::min(capacity, FreeBlocks::kLargest); }

void PytorchAllocator::lift_limits() {
  set_capacity(FreeBlocks::kLargest);
  lifted_ = true;
}

void PytorchAllocator::set_device_total(Bytes total) {
  device_total_ = std::min(total, FreeBlocks::kLargest);
  derive_rules();
}

void PytorchAllocator::derive_rules() {
  const AllocatorSettings& s = settings_;
  const bool limited = s.per_process_memory_fraction > 0 && s.per_process_memory_fraction < 1;
  if (limited) limit_ = static_cast<Bytes>(s.per_process_memory_fraction * static_cast<double>(device_total_));
  collects_garbage_ = limited && s.garbage_collection_threshold > 0;
  split_below_ = s.expandable_segments ? AllocatorSettings::kNoLimit : s.max_split_size;
  least_rest_[0] = kQuantum;
  least_rest_[1] = s.expandable_segments ? kQuantum : kSmallRequest + 1;
  rounds_plainly_ = std::all_of(s.roundup_power2_divisions.begin(), s.roundup_power2_divisions.end(),
                                [](std::uint32_t divisions) { return divisions <= 1; });
  searches_plainly_ = !s.expandable_segments && expandable_.empty() && !collects_garbage_ &&
                      s.max_split_size == AllocatorSettings::kNoLimit;
  update_plain();
}

void PytorchAllocator::update_plain() {
  plain_ = rounds_plainly_ && searches_plainly_ && !deferred_.waiting() && !pools_.routed();
}

// A number for a block, whose fields are those of its last occupant.
std::uint32_t PytorchAllocator::new_number() {
  if (unused_.empty()) {
    blocks_.emplace_back();
    return static_cast<std::uint32_t>(blocks_.size() - 1);
  }
  const std::uint32_t id = unused_.back();
  unused_.pop_back();
  return id;
}

std::uint32_t PytorchAllocator::new_block(const Block& block) {
  const std::uint32_t id = new_number();
  blocks_[id] = block;
  blocks_[id].exists = true;
  return id;
}

void PytorchAllocator::list(std::uint32_t id) {
  blocks_[id].listed = true;
  by_address_.insert(blocks_[id].address, id);
}

void PytorchAllocator::drop_block(std::uint32_t id) {
  if (blocks_[id].listed) by_address_.erase(blocks_[id].address);
  blocks_[id].exists = false;
  unused_.push_back(id);
}

void PytorchAllocator::insert_free(std::uint32_t id) {
  const Block& block = blocks_[id];
  pools_[block.pool].free.insert(block.size, block.address, id);
  if (!collects_garbage_) return;
  if (id >= cached_since_.size()) cached_since_.resize(blocks_.size());
  cached_since_[id] = large_searches_;
}

void PytorchAllocator::erase_free(std::uint32_t id) {
  pools_[blocks_[id].pool].free.erase(blocks_[id].size, blocks_[id].address, id);
}

std::optional<Address> PytorchAllocator::allocate(Bytes bytes, std::uint16_t stream) {
  assert(bytes >= 0);
  if (!plain_ || bytes == 0 || bytes > kLargestRequest) [[unlikely]]
    return allocate_by_rules(bytes, stream);
  const Bytes size = round_up(bytes, kQuantum);
  const std::uint32_t pool = pools_.for_request(stream, size > kSmallRequest);
  std::uint32_t id = pools_[pool].free.take_best(size);
  if (id == kNone) [[unlikely]] {
    id = allocate_with_retries(size, pool);
    if (id == kNone) return std::nullopt;
  }
  return hand_out(id, size, bytes);
}

std::optional<Address> PytorchAllocator::allocate_by_rules(Bytes bytes, std::uint16_t stream) {
  if (bytes == 0) return Address{0};
  if (deferred_.waiting() && captures_ == 0) process_events();
  const Bytes size = bytes > kLargestRequest ? kBeyondAnyDevice : round_request(settings_, bytes);
  const std::uint32_t pool = pools_.for_request(stream, size > kSmallRequest);
  std::uint32_t id = searches_plainly_ ? pools_[pool].free.take_best(size) : take_best_by_rules(pool, size);
  if (id == kNone) id = allocate_with_retries(size, pool);
  if (id == kNone) return std::nullopt;
  return hand_out(id, size, bytes);
}

// Oversize blocks serve oversize requests only, and those only where not too much is wasted: nothing is split off them.
bool PytorchAllocator::may_serve(Bytes size, Bytes block) const {
  if (size < settings_.max_split_size) return block < settings_.max_split_size;
  return block < size + settings_.max_non_split_rounding;
}

// The best fit where the settings, or expandable segments, change what is best. An expandable block counts with the
// unmapped range behind it, which it can grow into.
std::uint32_t PytorchAllocator::take_best_by_rules(std::uint32_t pool_number, Bytes size) {
  AllocatorPools::Pool& pool = pools_[pool_number];
  if (collects_garbage_ && pool.large && pool.private_pool == 0) ++large_searches_;
  const auto next = [&](const FreeBlocks::Entry& e) { return pool.free.find_from(e.size, e.address + 1); };
  const auto could_be = [&](const FreeBlocks::Entry& e) {
    const std::uint32_t behind = blocks_[e.block].next;
    return e.size + (behind != kNone && blocks_[behind].use == Use::unmapped ? blocks_[behind].size : 0);
  };
  const auto expandable = [&](const FreeBlocks::Entry& e) { return blocks_[e.block].expandable != kNone; };
  const FreeBlocks::Entry* best = pool.free.find_from(size);
  if (settings_.expandable_segments) {
    while (best != nullptr && expandable(*best)) {
      const FreeBlocks::Entry* other = next(*best);
      if (other == nullptr || could_be(*other) >= could_be(*best)) break;
      best = other;
    }
  } else {
    while (best != nullptr && expandable(*best)) best = next(*best);
  }
  if (best == nullptr || !may_serve(size, best->size)) return kNone;
  const std::uint32_t id = best->block;
  erase_free(id);
  return id;
}

// The low part keeps the number `id`; the new block behind it is in no pool yet.
std::uint32_t PytorchAllocator::split_off(std::uint32_t id, Bytes size) {
  const std::uint32_t rest_id = new_number();
  Block &low = blocks_[id], &rest = blocks_[rest_id];
  rest.address = low.address + static_cast<Address>(size);
  rest.size = low.size - size;
  rest.previous = id;
  rest.next = low.next;
  rest.pool = low.pool;
  rest.expandable = low.expandable;
  rest.use = low.use;
  rest.large = low.large;
  rest.exists = true;
  rest.foreign = rest.listed = false;
  if (rest.next != kNone) blocks_[rest.next].previous = rest_id;
  low.next = rest_id;
  low.size = size;
  return rest_id;
}

// REQUIRES: the next block is in no pool.
void PytorchAllocator::absorb_next(std::uint32_t id) {
  Block& block = blocks_[id];
  const std::uint32_t gone = block.next;
  block.size += blocks_[gone].size;
  block.next = blocks_[gone].next;
  if (block.next != kNone) blocks_[block.next].previous = id;
  drop_block(gone);
}

// The low part is handed out; the rest stays free behind it.
Address PytorchAllocator::hand_out(std::uint32_t id, Bytes size, Bytes requested) {
  const bool was_split = blocks_[id].previous != kNone || blocks_[id].next != kNone;
  const bool from_malloc = blocks_[id].expandable == kNone;
  const bool large = blocks_[id].large;
  const Bytes rest = blocks_[id].size - size;
  if (rest >= least_rest_[large] && size < split_below_) {
    insert_free(split_off(id, size));
    if (from_malloc) was_split ? counters_.change_inactive(large, 0, -size) : counters_.change_inactive(large, 1, rest);
  } else if (was_split && from_malloc) {
    counters_.change_inactive(large, -1, -blocks_[id].size);
  }
  Block& block = blocks_[id];
  block.use = Use::in_use;
  block.requested = requested;
  if (!block.listed) list(id);
  counters_.hand_out(large, block.size, requested);
  if (block.size >= settings_.max_split_size) counters_.change_oversize_allocations(1);
  return block.address;
}

std::uint32_t PytorchAllocator::block_in_use(Address address) const {
  const std::uint32_t id = by_address_.find(address);
  assert(id != AddressTable::kAbsent && blocks_[id].use == Use::in_use);
  return id;
}

void PytorchAllocator::free(Address address) {
  if (address == 0) return;
  const std::uint32_t id = block_in_use(address);
  Block& block = blocks_[id];
  if (block.foreign) [[unlikely]] {
    hold_back(id);
    deferred_.add(id, captures_ > 0);
    return update_plain();
  }
  counters_.free(block.large, block.size, block.requested);
  if (block.size >= settings_.max_split_size) counters_.change_oversize_allocations(-1);
  make_free(id);
}

// Joins its free neighbours and goes back to its pool.
void PytorchAllocator::make_free(std::uint32_t id) {
  blocks_[id].use = Use::free;
  std::int64_t inactive = 0;
  Bytes inactive_bytes = 0;
  const auto take_out = [&](std::uint32_t neighbour) {
    if (neighbour == kNone || blocks_[neighbour].use != Use::free) return false;
    erase_free(neighbour);
    --inactive;
    inactive_bytes -= blocks_[neighbour].size;
    return true;
  };
  if (take_out(blocks_[id].next)) absorb_next(id);
  if (const std::uint32_t previous = blocks_[id].previous; take_out(previous)) {
    id = previous;
    absorb_next(id);
  }
  insert_free(id);
  const Block& block = blocks_[id];
  if (block.expandable != kNone) return;
  if (block.previous != kNone || block.next != kNone) {
    ++inactive;
    inactive_bytes += block.size;
  }
  if (inactive != 0 || inactive_bytes != 0) counters_.change_inactive(block.large, inactive, inactive_bytes);
}

void PytorchAllocator::record_stream(Address address, std::uint16_t stream) {
  if (address == 0) return;
  const std::uint32_t id = block_in_use(address);
  if (stream == pools_[blocks_[id].pool].stream) return;
  blocks_[id].foreign = true;
  deferred_.use(id, stream, captures_ > 0);
}

// Freed by the host, but not yet to be reused.
void PytorchAllocator::hold_back(std::uint32_t id) {
  Block& block = blocks_[id];
  block.use = Use::pending;
  block.foreign = false;
  counters_.begin_wait(block.large, block.size, block.requested);
  if (block.size >= settings_.max_split_size) counters_.change_oversize_allocations(-1);
}

void PytorchAllocator::finish_pending(std::uint32_t id) {
  const Block& block = blocks_[id];
  counters_.end_wait(block.large, block.size, block.requested);
  make_free(id);
}

void PytorchAllocator::finish_pending(const std::vector<std::uint32_t>& ids) {
  for (const std::uint32_t id : ids) finish_pending(id);
}

void PytorchAllocator::process_events() {
  ready_.clear();
  deferred_.poll(ready_);
  finish_pending(ready_);
  update_plain();
}

void PytorchAllocator::request_free(Address address) {
  if (address == 0) return;
  const std::uint32_t id = block_in_use(address);
  hold_back(id);
  deferred_.hold(id);
}

void PytorchAllocator::complete_free(Address address) {
  if (address == 0) return;
  const std::uint32_t id = by_address_.find(address);
  if (id == AddressTable::kAbsent || blocks_[id].use != Use::pending || !deferred_.complete(id)) return;
  finish_pending(id);
}

void PytorchAllocator::begin_pool(std::uint32_t pool, std::vector<std::uint16_t> streams) {
  pools_.begin(pool, std::move(streams));
  update_plain();
}

void PytorchAllocator::end_pool(std::uint32_t pool) {
  pools_.end(pool);
  update_plain();
}

void PytorchAllocator::release_pool(std::uint32_t pool) { pools_.release(pool); }

void PytorchAllocator::begin_capture() { ++captures_; }

void PytorchAllocator::end_capture() {
  assert(captures_ > 0);
  if (--captures_ > 0) return;
  ready_.clear();
  deferred_.end_capture(ready_);
  finish_pending(ready_);
  update_plain();
}

std::unique_ptr<Allocator> make_pytorch_allocator(Bytes capacity) {
  return std::make_unique<PytorchAllocator>(capacity);
}

}  // namespace memwall
