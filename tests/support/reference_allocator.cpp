#include "tests/support/reference_allocator.h"

#include <stdexcept>

namespace memwall {
namespace {

constexpr Bytes kMebibyte = 1048576;

}  // namespace

std::map<Address, ReferenceAllocator::Block>::iterator ReferenceAllocator::best_fit(Bytes size, std::uint16_t stream,
                                                                                    bool small_pool) {
  auto best = blocks_.end();
  for (auto it = blocks_.begin(); it != blocks_.end(); ++it) {  // ascending, so the first of equals is the lowest
    const Block& b = it->second;
    if (b.in_use || b.stream != stream || b.small_pool != small_pool || b.size < size) continue;
    if (best == blocks_.end() || b.size < best->second.size) best = it;
  }
  return best;
}

void ReferenceAllocator::release_cached() {
  for (auto it = blocks_.begin(); it != blocks_.end();) {
    const Address segment = it->second.segment;
    const bool first = it->first == segment;
    const auto next = std::next(it);
    const bool alone = first && (next == blocks_.end() || next->second.segment != segment);
    if (alone && !it->second.in_use) {
      blocks_.erase(it);
      ++events_.device_frees;
    }
    it = next;
  }
  recount();
}

void ReferenceAllocator::recount() {
  usage_ = {};
  for (const auto& [address, block] : blocks_) {
    usage_.reserved += block.size;
    if (!block.in_use) continue;
    usage_.allocated += block.size;
    usage_.requested += block.requested;
  }
}

std::optional<Address> ReferenceAllocator::allocate(Bytes bytes, std::uint16_t stream) {
  if (bytes == 0) return 0;
  Bytes size = 512;
  while (size < bytes && size < 64 * 512) size += 512;
  if (size < bytes) size = bytes % 512 == 0 ? bytes : bytes - bytes % 512 + 512;
  const bool small_pool = size <= kMebibyte;
  auto it = best_fit(size, stream, small_pool);
  if (it == blocks_.end()) {
    Bytes segment = 2 * kMebibyte;
    if (size > kMebibyte) segment = 20 * kMebibyte;
    if (size >= 10 * kMebibyte)
      segment = size % (2 * kMebibyte) == 0 ? size : size - size % (2 * kMebibyte) + 2 * kMebibyte;
    if (usage_.reserved + segment > capacity_) {
      ++events_.retries;
      release_cached();
    }
    if (usage_.reserved + segment > capacity_) return std::nullopt;
    ++events_.device_mallocs;
    it = blocks_.emplace(next_segment_, Block{next_segment_, segment, 0, stream, small_pool, false}).first;
    next_segment_ += static_cast<Address>(segment);
  }
  const Bytes rest = it->second.size - size;
  if (small_pool ? rest >= 512 : rest > kMebibyte) {
    Block upper = it->second;
    upper.size = rest;
    blocks_.emplace(it->first + static_cast<Address>(size), upper);
    it->second.size = size;
  }
  it->second.in_use = true;
  it->second.requested = bytes;
  recount();
  return it->first;
}

void ReferenceAllocator::free(Address address) {
  if (address == 0) return;
  auto it = blocks_.find(address);
  if (it == blocks_.end() || !it->second.in_use) throw std::logic_error("free of an address that is not in use");
  it->second.in_use = false;
  it->second.requested = 0;
  const auto next = std::next(it);
  if (next != blocks_.end() && next->second.segment == it->second.segment && !next->second.in_use) {
    it->second.size += next->second.size;
    blocks_.erase(next);
  }
  if (it->first != it->second.segment) {
    const auto previous = std::prev(it);
    if (!previous->second.in_use) {
      previous->second.size += it->second.size;
      blocks_.erase(it);
    }
  }
  recount();
}

}  // namespace memwall
