#include "sim/pytorch_allocator.h"

#include <algorithm>
#include <cassert>

namespace memwall {
namespace {

// c10/core/AllocatorConfig.h: kMinBlockSize, kSmallSize, kSmallBuffer, kLargeBuffer, kMinLargeAlloc, kRoundLarge.
constexpr Bytes kQuantum = FreeBlocks::kQuantum;
constexpr Bytes kSmallRequest = MiB(1);
constexpr Bytes kSmallSegment = MiB(2);
constexpr Bytes kSharedSegment = MiB(20);
constexpr Bytes kOwnSegment = MiB(10);
constexpr Bytes kSegmentQuantum = MiB(2);
// Far beyond any machine; keeps the arithmetic below from overflowing on a hostile size.
constexpr Bytes kLargestRequest = FreeBlocks::kLargest / 2;

Bytes round_up(Bytes value, Bytes quantum) { return (value + quantum - 1) / quantum * quantum; }

Bytes segment_size(Bytes rounded) {
  if (rounded <= kSmallRequest) return kSmallSegment;
  if (rounded < kOwnSegment) return kSharedSegment;
  return round_up(rounded, kSegmentQuantum);
}

bool worth_splitting(bool small_pool, Bytes remaining) {
  return small_pool ? remaining >= kQuantum : remaining > kSmallRequest;
}

}  // namespace

PytorchAllocator::PytorchAllocator(Bytes capacity, SegmentSource* source, const AllocatorSettings& settings,
                                   StreamEvents* events)
    : capacity_(capacity), device_total_(capacity), source_(source), settings_(settings), stream_events_(events) {}

FreeBlocks& PytorchAllocator::pool(std::uint32_t number) {
  if (number >= pools_.size()) pools_.resize((number | 1) + 1);
  return pools_[number];
}

std::uint32_t PytorchAllocator::new_block(const Block& block) {
  std::uint32_t id;
  if (unused_.empty()) {
    id = static_cast<std::uint32_t>(blocks_.size());
    blocks_.push_back(block);
  } else {
    id = unused_.back();
    unused_.pop_back();
    blocks_[id] = block;
  }
  blocks_[id].exists = true;
  by_address_.insert(block.address, id);
  return id;
}

void PytorchAllocator::drop_block(std::uint32_t id) {
  by_address_.erase(blocks_[id].address);
  blocks_[id].exists = false;
  unused_.push_back(id);
}

std::optional<Address> PytorchAllocator::allocate(Bytes bytes, std::uint16_t stream) {
  assert(bytes >= 0);
  if (bytes == 0) return Address{0};
  if (bytes > kLargestRequest) return std::nullopt;
  const Bytes size = round_up(bytes, kQuantum);
  const bool small = size <= kSmallRequest;
  const std::uint32_t number = 2u * stream + (small ? 0 : 1);
  std::uint32_t id = pool(number).take_best(size);
  if (id == FreeBlocks::kNone) {
    id = obtain_segment(segment_size(size), number);
    if (id == kNone) return std::nullopt;
  }
  if (worth_splitting(small, blocks_[id].size - size)) split(id, size);
  Block& block = blocks_[id];
  block.in_use = true;
  block.requested = bytes;
  usage_.allocated += block.size;
  usage_.requested += bytes;
  return block.address;
}

// Nothing where the capacity, or the device, has no room for it.
std::optional<Address> PytorchAllocator::segment_address(Bytes size) {
  if (usage_.reserved + size > capacity_) return std::nullopt;
  if (source_ != nullptr) return source_->obtain(size);
  next_segment_ += static_cast<Address>(size);
  return next_segment_ - static_cast<Address>(size);
}

std::uint32_t PytorchAllocator::obtain_segment(Bytes size, std::uint32_t pool_number) {
  std::optional<Address> address = segment_address(size);
  if (!address) {
    ++events_.retries;
    release_cached();
    address = segment_address(size);
    if (!address) return kNone;
  }
  ++events_.device_mallocs;
  usage_.reserved += size;
  Block block;
  block.address = *address;
  block.size = size;
  block.pool = pool_number;
  return new_block(block);
}

// The low part is handed out; the rest becomes a free block behind it.
void PytorchAllocator::split(std::uint32_t id, Bytes size) {
  Block rest;
  rest.address = blocks_[id].address + static_cast<Address>(size);
  rest.size = blocks_[id].size - size;
  rest.pool = blocks_[id].pool;
  rest.previous = id;
  rest.next = blocks_[id].next;
  const std::uint32_t rest_id = new_block(rest);
  if (rest.next != kNone) blocks_[rest.next].previous = rest_id;
  blocks_[id].next = rest_id;
  blocks_[id].size = size;
  pool(rest.pool).insert({rest.size, rest.address, rest_id});
}

// `high` disappears into `low`, its neighbour below.
std::uint32_t PytorchAllocator::absorb(std::uint32_t low, std::uint32_t high) {
  blocks_[low].size += blocks_[high].size;
  blocks_[low].next = blocks_[high].next;
  if (blocks_[low].next != kNone) blocks_[blocks_[low].next].previous = low;
  drop_block(high);
  return low;
}

void PytorchAllocator::free(Address address) {
  if (address == 0) return;
  std::uint32_t id = by_address_.find(address);
  assert(id != AddressTable::kAbsent && blocks_[id].in_use);
  FreeBlocks& home = pools_[blocks_[id].pool];
  usage_.allocated -= blocks_[id].size;
  usage_.requested -= blocks_[id].requested;
  blocks_[id].in_use = false;
  blocks_[id].requested = 0;
  const std::uint32_t next = blocks_[id].next;
  if (next != kNone && !blocks_[next].in_use) {
    home.erase(blocks_[next].size, blocks_[next].address);
    absorb(id, next);
  }
  const std::uint32_t previous = blocks_[id].previous;
  if (previous != kNone && !blocks_[previous].in_use) {
    home.erase(blocks_[previous].size, blocks_[previous].address);
    id = absorb(previous, id);
  }
  home.insert({blocks_[id].size, blocks_[id].address, id});
}

void PytorchAllocator::release_cached() {
  for (std::size_t number = 1; number < pools_.size(); number += 2) release_pool(pools_[number]);
  for (std::size_t number = 0; number < pools_.size(); number += 2) release_pool(pools_[number]);
}

void PytorchAllocator::release_pool(FreeBlocks& free_blocks) {
  for (const FreeBlocks::Entry& entry : free_blocks.entries()) {
    const Block& block = blocks_[entry.block];
    if (block.previous != kNone || block.next != kNone) continue;  // part of its segment is in use
    free_blocks.erase(entry.size, entry.address);
    usage_.reserved -= entry.size;
    ++events_.device_frees;
    if (source_ != nullptr) source_->give_back(entry.address, entry.size);
    drop_block(entry.block);
  }
}

std::vector<PytorchAllocator::BlockView> PytorchAllocator::blocks() const {
  std::vector<BlockView> views;
  for (const Block& block : blocks_) {
    if (!block.exists) continue;
    const Block* first = &block;
    while (first->previous != kNone) first = &blocks_[first->previous];
    views.push_back({first->address, block.address, block.size, block.requested,
                     static_cast<std::uint16_t>(block.pool / 2), block.pool % 2 == 0, block.in_use});
  }
  std::sort(views.begin(), views.end(), [](const BlockView& a, const BlockView& b) { return a.address < b.address; });
  return views;
}

std::unique_ptr<Allocator> make_pytorch_allocator(Bytes capacity) {
  return std::make_unique<PytorchAllocator>(capacity);
}

}  // namespace memwall
