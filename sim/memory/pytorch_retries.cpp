// What PytorchAllocator does for a request that its cache cannot serve, and how segments come and go.
#include <algorithm>
#include <cassert>

#include "sim/memory/pytorch_allocator.h"
#include "sim/memory/pytorch_constants.h"

namespace memwall {

void PytorchAllocator::tell(RetryStep retry_step, Bytes bytes) {
  if (observer_ != nullptr) observer_->on_retry_step(retry_step, bytes);
}

std::uint32_t PytorchAllocator::allocate_with_retries(Bytes size, std::uint32_t pool_number) {
  if (collects_garbage_) collect_garbage();
  std::uint32_t id = try_device(size, pool_number);
  if (id != kNone) return id;
  if (release_available(size, pool_number)) id = try_device(size, pool_number);
  if (id == kNone && captures_ == 0) {
    const Bytes before = usage().reserved;
    release_all();
    tell(RetryStep::release_cached, before - usage().reserved);
    ++events_.retries;
    id = try_device(size, pool_number);
  }
  if (id == kNone) {
    ++counters_.out_of_memory;
    tell(RetryStep::out_of_memory, size);
  } else {
    tell(RetryStep::served, blocks_[id].size);
  }
  return id;
}

// A block that is in no pool, of at least `size` bytes, out of new device memory.
std::uint32_t PytorchAllocator::try_device(Bytes size, std::uint32_t pool_number) {
  const Bytes segment = size <= kSmallRequest ? kSmallSegment
                        : size < kOwnSegment  ? settings_.large_segment_size
                                              : round_up(size, kSegmentQuantum);
  if (!lifted_ && segment > limit_ - usage().reserved) {
    tell(RetryStep::device_refused, segment);
    return kNone;
  }
  return settings_.expandable_segments ? obtain_expandable(size, pool_number) : obtain_segment(segment, pool_number);
}

std::uint32_t PytorchAllocator::obtain_segment(Bytes size, std::uint32_t pool_number) {
  std::optional<Address> address;
  if (size <= capacity_ - usage().reserved)
    address = source_ != nullptr ? source_->obtain(size) : fresh_addresses(size);
  if (!address) {
    tell(RetryStep::device_refused, size);
    return kNone;
  }
  const AllocatorPools::Pool& pool = pools_[pool_number];
  ++events_.device_mallocs;
  counters_.reserve(pool.large, size);
  counters_.change_segments(pool.large, 1);
  if (size >= settings_.max_split_size) counters_.change_oversize_segments(1);
  if (observer_ != nullptr) observer_->on_segment_alloc(*address, size, pool.stream);
  Block block;
  block.address = *address;
  block.size = size;
  block.pool = pool_number;
  block.large = pool.large;
  return new_block(block);
}

bool PytorchAllocator::whole_segment(const Block& block) const {
  return block.previous == kNone && block.next == kNone && block.expandable == kNone;
}

// REQUIRES: a free block that is a whole segment.
void PytorchAllocator::give_back(std::uint32_t id) {
  const Block block = blocks_[id];
  const AllocatorPools::Pool& pool = pools_[block.pool];
  erase_free(id);
  drop_block(id);
  ++events_.device_frees;
  counters_.reserve(pool.large, -block.size);
  counters_.change_segments(pool.large, -1);
  if (block.size >= settings_.max_split_size) counters_.change_oversize_segments(-1);
  if (observer_ != nullptr) observer_->on_segment_free(block.address, block.size, pool.stream);
  if (source_ != nullptr) source_->give_back(block.address, block.size);
}

// Frees cached large segments of at least average age, again and again, until reserved memory is down to the threshold.
void PytorchAllocator::collect_garbage() {
  const auto threshold = static_cast<Bytes>(settings_.garbage_collection_threshold * static_cast<double>(limit_));
  if (usage().reserved <= threshold) return;
  const Bytes target = usage().reserved - threshold;
  std::vector<std::uint32_t> cached;  // by stream, size, address
  std::uint64_t total_age = 0;
  const auto age = [&](std::uint32_t id) { return large_searches_ - cached_since_[id]; };
  for (const std::uint32_t number : pools_.of_all_streams(0, true)) {
    for (const FreeBlocks::Entry& entry : pools_[number].free.entries()) {
      const Block& block = blocks_[entry.block];
      if (block.previous != kNone || block.next != kNone) continue;
      cached.push_back(entry.block);
      total_age += age(entry.block);
    }
  }
  Bytes freed = 0;
  while (freed < target && !cached.empty()) {
    const double mean_age = static_cast<double>(total_age) / static_cast<double>(cached.size());
    std::vector<std::uint32_t> younger;
    for (const std::uint32_t id : cached) {
      // An expandable segment counts in the mean, but stays.
      if (static_cast<double>(age(id)) < mean_age || !whole_segment(blocks_[id])) {
        younger.push_back(id);
        continue;
      }
      freed += blocks_[id].size;
      total_age -= age(id);
      give_back(id);
    }
    if (younger.size() == cached.size()) break;
    cached.swap(younger);
  }
  if (freed > 0) tell(RetryStep::garbage_collection, freed);
}

// Oversize blocks of the request's pool and stream: the smallest that makes room alone, else from the largest down.
// True if enough was freed.
bool PytorchAllocator::release_available(Bytes size, std::uint32_t pool_number) {
  if (settings_.max_split_size == AllocatorSettings::kNoLimit) return false;
  const FreeBlocks& free = pools_[pool_number].free;
  const Bytes target = std::max(size, settings_.max_split_size);
  Bytes freed = 0;
  const auto release = [&](const FreeBlocks::Entry& entry) {
    if (!whole_segment(blocks_[entry.block])) return;
    freed += entry.size;
    give_back(entry.block);
  };
  // Where the smallest that is large enough cannot be released, PyTorch does not look for a larger one.
  const FreeBlocks::Entry* entry = free.find_from(target);
  if (entry != nullptr) release(FreeBlocks::Entry(*entry));
  entry = free.find_before(target);
  while (entry != nullptr && freed < target && entry->size >= settings_.max_split_size) {
    const FreeBlocks::Entry at = *entry;
    release(at);
    entry = free.find_before(at.size, at.address);
  }
  if (freed > 0) tell(RetryStep::release_available, freed);
  return freed >= target;
}

void PytorchAllocator::release_cached() { captures_ == 0 ? release_all() : release_unused_pools(); }

// Waits for every stream first, so that nothing is held back.
void PytorchAllocator::release_all() {
  assert(captures_ == 0);
  ++counters_.synchronizations;
  ready_.clear();
  deferred_.synchronize(ready_);
  finish_pending(ready_);
  update_plain();
  release_pools(pools_.of_all_streams(0, true));
  release_pools(pools_.of_all_streams(0, false));
  release_unused_pools();
}

void PytorchAllocator::release_unused_pools() {
  for (const std::uint32_t private_pool : pools_.unused()) {
    release_pools(pools_.of_all_streams(private_pool, false));
    release_pools(pools_.of_all_streams(private_pool, true));
  }
}

// The whole segments, by stream, size and address; then the empty pages of expandable ones.
void PytorchAllocator::release_pools(const std::vector<std::uint32_t>& numbers) {
  std::vector<std::uint32_t> with_pages;
  for (const std::uint32_t number : numbers) {
    for (const FreeBlocks::Entry& entry : pools_[number].free.entries()) {
      if (blocks_[entry.block].expandable != kNone)
        with_pages.push_back(entry.block);
      else if (whole_segment(blocks_[entry.block]))
        give_back(entry.block);
    }
  }
  for (const std::uint32_t id : with_pages) unmap_pages(id);
}

}  // namespace memwall
