// Expandable segments of PytorchAllocator: address space reserved once, pages mapped and unmapped as needed.
#include <algorithm>
#include <cassert>

#include "sim/memory/pytorch_allocator.h"
#include "sim/memory/pytorch_constants.h"

namespace memwall {
namespace {

// What a device is taken to have at most, where its size means "unlimited".
constexpr Bytes kLargestDevice = Bytes{1} << 50;

}  // namespace

// Enough address space from this block on, free and unmapped pieces together?
bool PytorchAllocator::has_room(std::uint32_t id, Bytes size) const {
  Bytes room = 0;
  for (; id != kNone && room < size; id = blocks_[id].next) {
    if (blocks_[id].use != Use::free && blocks_[id].use != Use::unmapped) return false;
    room += blocks_[id].size;
  }
  return room >= size;
}

// The lowest unmapped block of the pool with enough room, or the free block before it; kNone if there is none.
std::uint32_t PytorchAllocator::find_expandable(Bytes size, std::uint32_t pool_number) const {
  for (const auto& [address, unmapped] : pools_[pool_number].unmapped) {
    const std::uint32_t previous = blocks_[unmapped].previous;
    const std::uint32_t first = previous != kNone && blocks_[previous].use == Use::free ? previous : unmapped;
    if (has_room(first, size)) return first;
  }
  return kNone;
}

// What a new segment reserves, in whole pages.
Bytes PytorchAllocator::address_space(Bytes page) const {
  const Bytes device = std::min(device_total_, kLargestDevice);
  Bytes space = device + device / 8;
  const double share = settings_.expandable_reserve_share * static_cast<double>(device);
  if (share > 0 && share < static_cast<double>(space)) space = static_cast<Bytes>(share);
  if (settings_.expandable_reserve > 0) space = std::min(space, settings_.expandable_reserve);
  return round_up(std::max(space, Bytes{1}), page);
}

// A new segment, all of it unmapped; kNone if it could not hold the request.
std::uint32_t PytorchAllocator::new_expandable(Bytes size, std::uint32_t pool_number) {
  AllocatorPools::Pool& pool = pools_[pool_number];
  ExpandableSegment segment;
  segment.page = pool.large ? settings_.large_segment_size : kSmallSegment;
  segment.size = address_space(segment.page);
  if (lifted_) segment.size = std::max(segment.size, round_up(size, segment.page));
  if (size > segment.size) return kNone;
  const std::optional<Address> address =
      source_ != nullptr ? source_->reserve(segment.size) : fresh_addresses(segment.size);
  if (!address) return kNone;
  segment.address = *address;
  Block block;
  block.address = *address;
  block.size = segment.size;
  block.pool = pool_number;
  block.expandable = static_cast<std::uint32_t>(expandable_.size());
  block.use = Use::unmapped;
  block.large = pool.large;
  expandable_.push_back(segment);
  derive_rules();
  const std::uint32_t id = new_block(block);
  pool.unmapped.emplace(*address, id);
  return id;
}

// Maps `bytes`, in whole pages, from the start of an unmapped block on. The free block that results, joined with its
// free neighbours; kNone if the device has no room.
std::uint32_t PytorchAllocator::map_pages(std::uint32_t id, Bytes bytes) {
  AllocatorPools::Pool& pool = pools_[blocks_[id].pool];
  const Bytes mapped = round_up(bytes, expandable_[blocks_[id].expandable].page);
  if (mapped > capacity_ - usage().reserved) {
    tell(RetryStep::device_refused, mapped);
    return kNone;
  }
  const Address address = blocks_[id].address;
  pool.unmapped.erase(address);
  if (mapped < blocks_[id].size) {
    const std::uint32_t rest = split_off(id, mapped);
    pool.unmapped.emplace(blocks_[rest].address, rest);
  }
  blocks_[id].use = Use::free;
  const std::uint32_t previous = blocks_[id].previous, next = blocks_[id].next;
  if (next != kNone && blocks_[next].use == Use::free) {
    erase_free(next);
    absorb_next(id);
  }
  if (previous != kNone && blocks_[previous].use == Use::free) {
    erase_free(previous);
    id = previous;
    absorb_next(id);
  }
  insert_free(id);
  ++events_.device_mallocs;
  ++events_.maps;
  events_.pages_mapped += static_cast<std::uint64_t>(mapped / expandable_[blocks_[id].expandable].page);
  counters_.reserve(pool.large, mapped);
  if (observer_ != nullptr) observer_->on_segment_map(address, mapped, pool.stream);
  return id;
}

std::uint32_t PytorchAllocator::obtain_expandable(Bytes size, std::uint32_t pool_number) {
  std::uint32_t id = find_expandable(size, pool_number);
  if (id == kNone) id = new_expandable(size, pool_number);
  if (id == kNone) {
    tell(RetryStep::device_refused, size);
    return kNone;
  }
  if (blocks_[id].use == Use::unmapped) {
    id = map_pages(id, std::min(blocks_[id].size, size));
    if (id == kNone) return kNone;
  }
  while (blocks_[id].size < size) {  // an unmapped block follows
    const std::uint32_t next = blocks_[id].next;
    id = map_pages(next, std::min(size - blocks_[id].size, blocks_[next].size));
    if (id == kNone) return kNone;
  }
  erase_free(id);
  return id;
}

// Gives the pages that lie wholly inside a free block back; what is left of it on either side stays free.
void PytorchAllocator::unmap_pages(std::uint32_t id) {
  const Block block = blocks_[id];
  const ExpandableSegment& segment = expandable_[block.expandable];
  const auto offset = static_cast<Bytes>(block.address - segment.address);
  const Bytes begin = round_up(offset, segment.page), end = round_down(offset + block.size, segment.page);
  if (begin >= end) return;
  erase_free(id);
  if (begin > offset) {
    const std::uint32_t low = id;
    id = split_off(low, begin - offset);
    insert_free(low);
  }
  if (offset + block.size > end) insert_free(split_off(id, end - begin));
  const AllocatorPools::Pool& pool = pools_[block.pool];
  const Address address = blocks_[id].address;
  ++events_.device_frees;
  ++events_.unmaps;
  events_.pages_unmapped += static_cast<std::uint64_t>((end - begin) / segment.page);
  counters_.reserve(pool.large, begin - end);
  id = become_unmapped(id);
  if (observer_ != nullptr) observer_->on_segment_unmap(address, end - begin, pool.stream);
  drop_if_unmapped(id);
}

// Joins its unmapped neighbours.
std::uint32_t PytorchAllocator::become_unmapped(std::uint32_t id) {
  auto& unmapped = pools_[blocks_[id].pool].unmapped;
  blocks_[id].use = Use::unmapped;
  const std::uint32_t previous = blocks_[id].previous, next = blocks_[id].next;
  if (next != kNone && blocks_[next].use == Use::unmapped) {
    unmapped.erase(blocks_[next].address);
    absorb_next(id);
  }
  if (previous != kNone && blocks_[previous].use == Use::unmapped) {
    unmapped.erase(blocks_[previous].address);
    id = previous;
    absorb_next(id);
  }
  unmapped.emplace(blocks_[id].address, id);
  return id;
}

// An expandable segment without a mapped page is given up.
void PytorchAllocator::drop_if_unmapped(std::uint32_t id) {
  const Block block = blocks_[id];
  if (block.previous != kNone || block.next != kNone) return;
  pools_[block.pool].unmapped.erase(block.address);
  drop_block(id);
  if (source_ != nullptr) source_->unreserve(block.address, block.size);
}

}  // namespace memwall
