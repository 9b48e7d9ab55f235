// Of the reference allocator: what it obtains from the device and gives back, in segments and in mapped pages.
#include <algorithm>

#include "tests/support/reference_allocator.h"

namespace memwall {
namespace {

using Use = BlockState::Use;

Bytes multiple_below(Bytes bytes, Bytes unit) { return bytes / unit * unit; }

}  // namespace

std::optional<Address> ReferenceAllocator::obtain(const Request& r) {
  const bool fraction =
      rules_.fraction_limits && limited() && (!settings_.expandable_segments || rules_.fraction_asks_segment);
  if (fraction && reserved() + r.segment > limit()) return refused(r.segment);
  if (settings_.expandable_segments) return obtain_expandable(r);
  if (r.segment > capacity_ - reserved()) return refused(r.segment);
  std::optional<Address> address = next_segment_;
  if (source_)
    address = source_->obtain(r.segment);
  else
    next_segment_ += static_cast<Address>(r.segment);
  if (!address) return refused(r.segment);
  segments_[*address] = {r.segment, r.stream, r.pool, r.size <= rules_.small_limit, false};
  Block block;
  block.segment = *address;
  block.size = r.segment;
  block.cached_at = searches_[r.pool];
  blocks_[*address] = block;
  ++statistics_.num_device_alloc;
  ++device_calls_.device_mallocs;
  recount();
  if (observer_) observer_->on_segment_alloc(*address, r.segment, r.stream);
  return address;
}

Bytes ReferenceAllocator::page_of(const Segment& segment) const {
  if (!rules_.maps_whole_pages) return rules_.rounding_quantum;
  if (segment.small_sized) return rules_.small_segment;
  if (!rules_.large_page_from_setting) return MiB(2);
  return rules_.large_segment_from_setting ? settings_.large_segment_size : MiB(20);
}

// Whether the free and unmapped blocks from `start` on hold `size` bytes without a break.
bool ReferenceAllocator::run_suffices(Address start, Bytes size) const {
  const Address segment = blocks_.at(start).segment;
  Bytes bytes = 0;
  for (auto it = blocks_.find(start); it != blocks_.end() && it->second.segment == segment && bytes < size; ++it) {
    if (it->second.use != Use::free && it->second.use != Use::unmapped) break;
    bytes += it->second.size;
  }
  return bytes >= size;
}

std::optional<Address> ReferenceAllocator::room_for(const Request& r) const {
  std::optional<Address> found;
  for (auto it = blocks_.begin(); it != blocks_.end(); ++it) {
    if (it->second.use != Use::unmapped) continue;
    const Segment& segment = segments_.at(it->second.segment);
    if (segment.pool != r.pool || segment.stream != r.stream) continue;
    auto start = it;
    if (it->first != it->second.segment && std::prev(it)->second.use == Use::free && rules_.preceding_free_block_used)
      --start;
    if (!run_suffices(start->first, r.size)) continue;
    found = start->first;
    if (rules_.lowest_gap_first) break;
  }
  return found;
}

Bytes ReferenceAllocator::address_space(const Segment& segment) const {
  const Bytes device = std::min(device_total_, Bytes{1} << 50);  // more means "unlimited"
  auto wanted = static_cast<double>(device + device / 8 * rules_.reservation_extra_eighths);
  if (rules_.reservation_from_setting && settings_.expandable_reserve_share > 0)
    wanted = std::min(wanted, settings_.expandable_reserve_share * static_cast<double>(device));
  if (rules_.reservation_from_setting && settings_.expandable_reserve > 0)
    wanted = std::min(wanted, static_cast<double>(settings_.expandable_reserve));
  return std::max(page_of(segment), multiple_above(static_cast<Bytes>(wanted), page_of(segment)));
}

std::optional<Address> ReferenceAllocator::reserve_range(const Request& r) {
  Segment segment{0, r.stream, r.pool, r.size <= rules_.small_limit, true};
  segment.size = address_space(segment);
  if (r.size > segment.size) return std::nullopt;  // it could never hold the request
  std::optional<Address> address = next_segment_;
  if (source_)
    address = source_->reserve(segment.size);
  else
    next_segment_ += static_cast<Address>(segment.size);
  if (!address) return std::nullopt;
  segments_[*address] = segment;
  Block block;
  block.segment = *address;
  block.size = segment.size;
  block.use = Use::unmapped;
  blocks_[*address] = block;
  recount();
  return address;
}

// The block that begins at `start` of a run is mapped piece by piece until it is large enough.
std::optional<Address> ReferenceAllocator::obtain_expandable(Request r) {
  if (!rules_.maps_request_only) r.size = r.segment;
  auto candidate = room_for(r);
  if (!candidate) candidate = reserve_range(r);
  if (!candidate) return refused(r.size);
  if (blocks_.at(*candidate).use == Use::unmapped) {
    candidate = map(*candidate, std::min(blocks_.at(*candidate).size, r.size));
    if (!candidate) return std::nullopt;
  }
  while (blocks_.at(*candidate).size < r.size) {
    const Bytes have = blocks_.at(*candidate).size;
    const auto next = blocks_.find(*candidate + static_cast<Address>(have));
    const bool usable = next != blocks_.end() && next->second.segment == blocks_.at(*candidate).segment &&
                        next->second.use == Use::unmapped;
    if (!usable) return std::nullopt;
    candidate = map(next->first, std::min(r.size - have, next->second.size));
    if (!candidate) return std::nullopt;
  }
  return candidate;
}

// Maps whole pages from the start of an unmapped block. The free block that they became part of.
std::optional<Address> ReferenceAllocator::map(Address address, Bytes bytes) {
  const Segment segment = segment_of(address);
  Block& block = blocks_.at(address);
  const Bytes mapped = std::min(multiple_above(bytes, page_of(segment)), block.size);
  if (mapped > capacity_ - reserved()) return refused(mapped);
  if (mapped < block.size) {
    Block rest = block;
    rest.size = block.size - mapped;
    blocks_.emplace(address + static_cast<Address>(mapped), rest);
  }
  block.size = mapped;
  block.use = Use::free;
  const Address merged = merge(address);
  if (rules_.mapping_is_device_alloc) {
    ++statistics_.num_device_alloc;
    ++device_calls_.device_mallocs;
  }
  recount();
  if (observer_) observer_->on_segment_map(address, mapped, segment.stream);
  return merged;
}

// Gives back the pages that lie wholly inside the free block.
void ReferenceAllocator::unmap(Address address) {
  const Block block = blocks_.at(address);
  const Segment segment = segments_.at(block.segment);
  const Bytes page = page_of(segment);
  const auto offset = static_cast<Bytes>(address - block.segment);
  const Bytes begin = multiple_above(offset, page), end = multiple_below(offset + block.size, page);
  if (begin >= end) return;
  if (!rules_.unmaps_inner_pages && (begin != offset || end != offset + block.size)) return;
  blocks_.erase(address);
  const auto put = [&](Bytes from, Bytes to, Use use) {
    if (from == to) return;
    Block piece;
    piece.segment = block.segment;
    piece.size = to - from;
    piece.use = use;
    piece.cached_at = searches_[segment.pool];
    blocks_[block.segment + static_cast<Address>(from)] = piece;
  };
  put(offset, begin, Use::free);
  put(begin, end, Use::unmapped);
  put(end, offset + block.size, Use::free);
  const Address middle = block.segment + static_cast<Address>(begin);
  const Address merged = merge(middle);
  ++statistics_.num_device_free;
  ++device_calls_.device_frees;
  recount();
  if (observer_) observer_->on_segment_unmap(middle, end - begin, segment.stream);
  if (whole(merged) && rules_.empty_reservation_dropped) {
    blocks_.erase(merged);
    segments_.erase(block.segment);
    recount();
    if (source_) source_->unreserve(block.segment, segment.size);
  }
}

// REQUIRES: a free block that is its whole segment, not expandable.
void ReferenceAllocator::give_back(Address address) {
  const Segment segment = segments_.at(address);
  segments_.erase(address);
  blocks_.erase(address);
  ++statistics_.num_device_free;
  ++device_calls_.device_frees;
  recount();
  if (source_) source_->give_back(address, segment.size);
  if (observer_) observer_->on_segment_free(address, segment.size, segment.stream);
}

void ReferenceAllocator::release_cached() {
  if (captures_ == 0 || !rules_.capture_keeps_cache)
    release_everything();
  else if (rules_.capture_releases_unused_pools)
    release_unused_pools();
}

void ReferenceAllocator::release_everything() {
  if (rules_.release_synchronizes) synchronize();
  const bool large_first = rules_.release_large_pool_first;
  release({0, !large_first});
  release({0, large_first});
  release_unused_pools();
}

void ReferenceAllocator::release_unused_pools() {
  for (const auto& [pool, uses] : pool_uses_) {
    if (uses > 0 && rules_.private_pools_kept_while_used) continue;
    release({pool, rules_.private_release_small_first});
    release({pool, !rules_.private_release_small_first});
  }
}

void ReferenceAllocator::release(const Pool& pool) {
  if (pool.small && !rules_.release_small_segments) return;
  auto blocks = free_blocks(pool);
  if (!rules_.release_by_size)
    std::sort(blocks.begin(), blocks.end(), [](const auto& a, const auto& b) { return a.address < b.address; });
  if (!rules_.release_ascending) std::reverse(blocks.begin(), blocks.end());
  std::vector<Address> expandable;
  for (const FreeBlock& block : blocks) {
    if (segment_of(block.address).expandable)
      expandable.push_back(block.address);
    else if (whole(block.address))
      give_back(block.address);
  }
  for (const Address address : expandable) unmap(address);
}

// Frees blocks of max_split_size or more, but only what the request needs: the smallest that suffices alone, or else
// from the largest down. Whether that is enough.
bool ReferenceAllocator::release_available(const Request& r) {
  const Bytes target = std::max(r.size, settings_.max_split_size);
  std::vector<FreeBlock> below;
  for (const FreeBlock& block : free_blocks(r.pool)) {
    if (block.stream != r.stream || block.size < settings_.max_split_size) continue;
    const bool releasable = !segment_of(block.address).expandable && whole(block.address);
    if (block.size >= target && rules_.available_single_first) {
      // The first that is large enough decides: if it cannot be released, the smaller ones are tried together.
      if (!releasable) break;
      give_back(block.address);
      return true;
    }
    if (releasable) below.push_back(block);
  }
  if (rules_.available_largest_first) std::reverse(below.begin(), below.end());
  Bytes released = 0;
  for (const FreeBlock& block : below) {
    if (released >= target) break;
    released += block.size;
    give_back(block.address);
  }
  return released >= target;
}

// The blocks whose ages garbage collection looks at: it frees those that are not expandable.
std::vector<ReferenceAllocator::FreeBlock> ReferenceAllocator::garbage() const {
  std::vector<FreeBlock> found;
  for (const auto& [address, segment] : segments_) {
    const bool collected = (!segment.small_sized || !rules_.garbage_large_only) &&
                           (segment.pool.private_pool == 0 || !rules_.garbage_default_only);
    const bool counts = !segment.expandable || rules_.garbage_mean_of_expandable;
    const bool cached = counts && blocks_.at(address).use == Use::free && whole(address);
    if (collected && cached) found.push_back({segment.stream, segment.size, address});
  }
  std::sort(found.begin(), found.end());
  return found;
}

void ReferenceAllocator::collect_garbage() {
  if (!collects_garbage() || !rules_.garbage_collected) return;
  const auto threshold = static_cast<Bytes>(settings_.garbage_collection_threshold * static_cast<double>(limit()));
  if (reserved() <= threshold) return;
  const Bytes target = reserved() - threshold;
  std::vector<FreeBlock> blocks = garbage();
  const auto age = [&](const FreeBlock& block) {
    const std::uint64_t since = rules_.garbage_age_restarts ? blocks_.at(block.address).cached_at : 0;
    return static_cast<double>(searches_[segment_of(block.address).pool] - since);
  };
  Bytes reclaimed = 0;
  while (reclaimed < target && !blocks.empty()) {
    double sum = 0;
    for (const FreeBlock& block : blocks) sum += age(block);
    const double mean = sum / static_cast<double>(blocks.size());
    std::vector<FreeBlock> younger;
    for (const FreeBlock& block : blocks) {
      const bool young = rules_.garbage_mean_included ? age(block) < mean : age(block) <= mean;
      if ((rules_.garbage_by_age && young) || segment_of(block.address).expandable) {
        younger.push_back(block);
        continue;
      }
      reclaimed += block.size;
      give_back(block.address);
    }
    if (younger.size() == blocks.size() || !rules_.garbage_until_target) break;
    blocks = younger;
  }
  if (reclaimed > 0) retry_step(AllocatorObserver::RetryStep::garbage_collection, reclaimed);
}

}  // namespace memwall
