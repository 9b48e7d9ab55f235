#include "sim/memory/stitching_allocator.h"

#include <algorithm>
#include <cassert>

#include "sim/memory/pytorch_constants.h"

namespace memwall {
namespace {

constexpr Bytes kChunk = MiB(2);             // CUDA's granularity of physical memory
constexpr Bytes kSharedSegment = MiB(20);    // as in the caching allocator
constexpr Bytes kFragmentLimit = MiB(512);   // fragLimit
constexpr Bytes kReuseLimit = 10;            // reuseLimit
constexpr Bytes kStitchedLimit = GiB(1000);  // autoGC

}  // namespace

std::optional<Address> StitchingAllocator::allocate(Bytes bytes, std::uint16_t stream) {
  assert(bytes >= 0);
  if (bytes == 0) return Address{0};
  if (bytes > kLargestRequest) return std::nullopt;
  if (bytes <= kSmallRequest) return allocate_small(bytes, stream);
  const Bytes size = round_up(bytes, kChunk);
  Stream& pool = streams_[stream];
  Block block;
  block.size = size;
  block.requested = bytes;
  block.stream = stream;
  std::optional<Address> address = contiguous(pool, size, block);
  if (!address) address = stitched_before(pool, size, block);
  if (!address) address = stitch(pool, size, block);
  if (!address && obtain_segment(pool, stream, size)) address = contiguous(pool, size, block);
  if (!address) return std::nullopt;
  large_.allocated += size;
  large_.requested += bytes;
  in_use_.emplace(*address, std::move(block));
  update_usage();
  return address;
}

// The caching allocator's small pool, with what the large blocks leave of the capacity.
std::optional<Address> StitchingAllocator::allocate_small(Bytes bytes, std::uint16_t stream) {
  small_.set_capacity(std::max<Bytes>(0, capacity_ - large_.reserved));
  std::optional<Address> address = small_.allocate(bytes, stream);
  if (!address && release_large()) {
    small_.set_capacity(std::max<Bytes>(0, capacity_ - large_.reserved));
    address = small_.allocate(bytes, stream);
  }
  update_usage();
  return address;
}

std::optional<Address> StitchingAllocator::contiguous(Stream& stream, Bytes size, Block& block) {
  const auto piece = stream.free.best_fit(size);
  if (!piece) return std::nullopt;
  block.pieces = {{piece->begin, size}};
  take(stream, block.pieces);
  return piece->begin;
}

std::optional<Address> StitchingAllocator::stitched_before(Stream& stream, Bytes size, Block& block) {
  const auto end = stream.stitched.upper_bound(size * kReuseLimit);
  for (auto place = stream.stitched.lower_bound(size); place != end; ++place) {
    Stitched& range = place->second;
    const auto is_free = [&](const RangeSet::Range& piece) { return stream.free.covers(piece); };
    if (range.in_use || !std::all_of(range.pieces.begin(), range.pieces.end(), is_free)) continue;
    Bytes missing = size;
    for (const RangeSet::Range& piece : range.pieces) {
      if (missing == 0) break;
      block.pieces.push_back({piece.begin, std::min(missing, piece.size)});
      missing -= block.pieces.back().size;
    }
    range.in_use = block.stitched = true;
    block.place = place;
    take(stream, block.pieces);
    return range.address;
  }
  return std::nullopt;
}

std::optional<Address> StitchingAllocator::stitch(Stream& stream, Bytes size, Block& block) {
  const auto& by_size = stream.free.by_size();
  if (size < kFragmentLimit || by_size.size() < 2) return std::nullopt;
  Bytes missing = size;
  Pieces pieces;
  for (auto piece = by_size.rbegin(); piece != by_size.rend() && missing > 0; ++piece) {
    pieces.push_back({piece->second, std::min(missing, piece->first)});
    missing -= pieces.back().size;
  }
  if (missing > 0 || next_stitched_ + static_cast<Address>(size) > kLastStitched) return std::nullopt;
  block.pieces = pieces;
  block.stitched = true;
  block.place = stream.stitched.emplace(size, Stitched{next_stitched_, std::move(pieces), true});
  next_stitched_ += static_cast<Address>(size);
  take(stream, block.pieces);
  stitched_bytes_ += size;
  if (stitched_bytes_ > kStitchedLimit) forget_stitched();
  return block.place->second.address;
}

void StitchingAllocator::take(Stream& stream, const Pieces& pieces) {
  for (const RangeSet::Range& piece : pieces) stream.free.erase(piece);
}

bool StitchingAllocator::obtain_segment(Stream& stream, std::uint16_t number, Bytes request) {
  const Bytes size = request < kOwnSegment ? kSharedSegment : request;
  if (usage_.reserved + size > capacity_) {
    ++large_events_.retries;
    release_cached();
    if (usage_.reserved + size > capacity_) return false;
  }
  if (next_segment_ + static_cast<Address>(size + kChunk) > kFirstStitched) return false;
  stream.free.insert({next_segment_, size});
  segments_[next_segment_] = {size, number};
  // A gap between segments keeps their pieces from being joined.
  next_segment_ += static_cast<Address>(size + kChunk);
  large_.reserved += size;
  ++large_events_.device_mallocs;
  update_usage();
  return true;
}

void StitchingAllocator::free(Address address) {
  if (address == 0) return;
  const auto found = in_use_.find(address);
  if (found == in_use_.end()) {
    small_.free(address);
    return update_usage();
  }
  Block& block = found->second;
  large_.allocated -= block.size;
  large_.requested -= block.requested;
  for (const RangeSet::Range& piece : block.pieces) streams_[block.stream].free.insert(piece);
  if (block.stitched) {
    block.place->second.in_use = false;
    if (block.place->second.stale) {
      stitched_bytes_ -= block.place->first;
      streams_[block.stream].stitched.erase(block.place);
    }
  }
  in_use_.erase(found);
  update_usage();
}

void StitchingAllocator::release_cached() {
  release_large();
  small_.release_cached();
  update_usage();
}

bool StitchingAllocator::release_large() {
  const std::uint64_t before = large_events_.device_frees;
  for (auto segment = segments_.begin(); segment != segments_.end();) {
    const RangeSet::Range range{segment->first, segment->second.size};
    Stream& stream = streams_[segment->second.stream];
    if (!stream.free.covers(range)) {
      ++segment;
      continue;
    }
    stream.free.erase(range);
    drop_stitched(stream, range);
    large_.reserved -= range.size;
    ++large_events_.device_frees;
    segment = segments_.erase(segment);
  }
  update_usage();
  return large_events_.device_frees > before;
}

// Forgets what was stitched of this segment.
void StitchingAllocator::drop_stitched(Stream& stream, const RangeSet::Range& segment) {
  const auto inside = [&](const RangeSet::Range& piece) {
    return segment.begin <= piece.begin && piece.begin < segment.end();
  };
  for (auto place = stream.stitched.begin(); place != stream.stitched.end();) {
    Stitched& range = place->second;
    const bool gone = std::any_of(range.pieces.begin(), range.pieces.end(), inside);
    range.stale = range.stale || gone;
    if (gone && !range.in_use) {
      stitched_bytes_ -= place->first;
      place = stream.stitched.erase(place);
    } else {
      ++place;
    }
  }
}

void StitchingAllocator::forget_stitched() {
  for (auto& [number, stream] : streams_)
    std::erase_if(stream.stitched, [&](const auto& entry) {
      if (!entry.second.in_use) stitched_bytes_ -= entry.first;
      return !entry.second.in_use;
    });
}

void StitchingAllocator::update_usage() {
  const Usage& small = small_.usage();
  usage_ = {large_.allocated + small.allocated, large_.requested + small.requested, large_.reserved + small.reserved};
  const AllocatorEvents& events = small_.events();
  events_ = events;  // it has no pages of expandable segments
  events_.device_mallocs += large_events_.device_mallocs;
  events_.device_frees += large_events_.device_frees;
  events_.retries += large_events_.retries;
}

std::vector<RangeSet::Range> StitchingAllocator::pieces(Address address) const {
  const auto found = in_use_.find(address);
  return found == in_use_.end() ? Pieces{{address, 0}} : found->second.pieces;
}

std::unique_ptr<Allocator> make_stitching_allocator(Bytes capacity) {
  return std::make_unique<StitchingAllocator>(capacity);
}

}  // namespace memwall
