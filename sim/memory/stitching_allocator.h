// A caching allocator that joins free pieces by virtual memory, after GMLake: where a large request finds no contiguous
// free piece, several free pieces are mapped one behind the other into a new range of addresses.
// Source of the rules: intelligent-machine-learning/glake, GMLake/src/CUDACachingAllocator.cpp and its tutorial.
//
// Large requests (above 1 MiB), per stream, all sizes multiples of the physical chunk of 2 MiB:
// 1. Best fit among the free pieces: smallest that is large enough, lowest address; its low part is handed out.
// 2. Else a range stitched earlier whose chunks are all free, the smallest that is large enough, at most 10 times the
//    request; its first chunks are handed out.
// 3. Else, from 512 MiB on: the largest free pieces, as many as are needed, are stitched; of the last one the low part.
// 4. Else a segment from the device: 20 MiB below 10 MiB, otherwise as large as the request.
// 5. Else every wholly free segment goes back to the device, one retry is counted, and 4 is tried once more.
// Stitched ranges are kept for rule 2 until a segment of theirs goes back; where they span more than 1000 GiB of
// addresses, all that are not in use are forgotten. Small requests are served by the caching allocator's small pool.
//
// What is a model: GMLake's other settings (stitch only when memory is short, other limits) are not offered, nor are
// those of PYTORCH_ALLOC_CONF. Mapping costs no time here.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "sim/memory/pytorch_allocator.h"
#include "sim/memory/range_set.h"

namespace memwall {

class StitchingAllocator final : public Allocator {
 public:
  explicit StitchingAllocator(Bytes capacity) : capacity_(capacity), small_(capacity) {}

  std::optional<Address> allocate(Bytes bytes, std::uint16_t stream) override;
  void free(Address address) override;
  const Usage& usage() const override { return usage_; }
  const AllocatorEvents& events() const override { return events_; }
  void set_capacity(Bytes capacity) override { capacity_ = capacity; }

  // Gives every segment without a block in use back to the device.
  void release_cached();
  // The physical pieces behind a block in use, in the order in which it sees them; of a small one its address alone.
  // For tests.
  std::vector<RangeSet::Range> pieces(Address address) const;

 private:
  // Above all addresses of the small pool; two ranges that do not meet.
  static constexpr Address kFirstSegment = Address{1} << 60, kFirstStitched = Address{1} << 61;
  static constexpr Address kLastStitched = Address{1} << 63;

  using Pieces = std::vector<RangeSet::Range>;

  struct Stitched {
    Address address = 0;  // where it is mapped
    Pieces pieces;
    bool in_use = false;
    bool stale = false;  // in use with its first chunks only, and of others the segment is gone
  };
  struct Stream {
    RangeSet free;
    std::multimap<Bytes, Stitched> stitched;  // by size
  };
  struct Segment {
    Bytes size = 0;
    std::uint16_t stream = 0;
  };
  using StitchedPlace = std::multimap<Bytes, Stitched>::iterator;
  struct Block {
    Bytes size = 0, requested = 0;
    std::uint16_t stream = 0;
    Pieces pieces;
    bool stitched = false;
    StitchedPlace place;  // of a stitched one
  };

  std::optional<Address> allocate_small(Bytes bytes, std::uint16_t stream);
  std::optional<Address> contiguous(Stream& stream, Bytes size, Block& block);
  std::optional<Address> stitched_before(Stream& stream, Bytes size, Block& block);
  std::optional<Address> stitch(Stream& stream, Bytes size, Block& block);
  bool obtain_segment(Stream& stream, std::uint16_t number, Bytes size);
  // True if anything went back.
  bool release_large();
  void drop_stitched(Stream& stream, const RangeSet::Range& segment);
  void forget_stitched();
  void update_usage();
  void take(Stream& stream, const Pieces& pieces);

  Bytes capacity_;
  PytorchAllocator small_;
  Usage large_, usage_;  // of large blocks; of all
  AllocatorEvents large_events_, events_;
  std::map<std::uint16_t, Stream> streams_;
  std::map<Address, Segment> segments_;
  std::unordered_map<Address, Block> in_use_;
  Bytes stitched_bytes_ = 0;  // of addresses
  Address next_segment_ = kFirstSegment, next_stitched_ = kFirstStitched;
};

}  // namespace memwall
