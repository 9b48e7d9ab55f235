// Do the pool of cudaMallocAsync and the stitching allocator keep their promises over random requests? The pool is
// held against the pages that live blocks touch; stitching against a slow model that looks at every chunk.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "sim/memory/stitching_allocator.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

constexpr Bytes kPage = MiB(2);

struct Live {
  Address address = 0;
  Bytes bytes = 0;
};

// Pages that blocks in use touch.
std::set<Address> touched(const std::vector<Live>& live) {
  std::set<Address> pages;
  for (const Live& block : live)
    for (Address page = block.address / kPage; page <= (block.address + static_cast<Address>(block.bytes) - 1) / kPage;
         ++page)
      pages.insert(page);
  return pages;
}

bool apart(const std::vector<Live>& live) {
  std::map<Address, Address> ranges;
  for (const Live& block : live) ranges[block.address] = block.address + static_cast<Address>(block.bytes);
  if (ranges.size() != live.size()) return false;
  Address end = 0;
  for (const auto& [begin, next_end] : ranges) {
    if (begin < end) return false;
    end = next_end;
  }
  return true;
}

RC_GTEST_PROP(CudaAsyncAllocator, GrowsOnlyWhereEveryPageIsTouched, ()) {
  const Bytes capacity = *rc::gen::inRange<Bytes>(1, 200) * MiB(1);
  const auto a = make_cuda_async_allocator(capacity);
  std::mt19937_64 random(*rc::gen::arbitrary<std::uint64_t>());
  std::vector<Live> live;
  Bytes requested = 0;
  for (int n = 0; n < 300; ++n) {
    if (!live.empty() && random() % 5 < 2) {
      const std::size_t i = random() % live.size();
      a->free(live[i].address);
      requested -= live[i].bytes;
      live.erase(live.begin() + static_cast<std::ptrdiff_t>(i));
      continue;
    }
    const Bytes bytes = static_cast<Bytes>(random() % (std::uint64_t{1} << (random() % 26))) + 1;
    const Bytes before = a->usage().reserved;
    const auto address = a->allocate(bytes, static_cast<std::uint16_t>(random() % 3));
    if (address) {
      live.push_back({*address, bytes});
      requested += bytes;
    }
    RC_ASSERT(apart(live));
    RC_ASSERT(a->usage().requested == requested);
    RC_ASSERT(a->usage().reserved % kPage == 0);
    RC_ASSERT(a->usage().reserved >= before);
    RC_ASSERT(a->usage().reserved <= capacity);
    const Bytes in_use = static_cast<Bytes>(touched(live).size()) * kPage;
    RC_ASSERT(a->usage().reserved >= in_use);
    if (a->usage().reserved > before) RC_ASSERT(a->usage().reserved == in_use);
    // What failed had not enough pages: neither free ones nor the capacity's. At most one piece at the end of the pool
    // would have helped.
    if (!address) RC_ASSERT(capacity - in_use < bytes + kPage);
  }
}

// GMLake's rules for large requests of one stream on single chunks of 2 MiB; a chunk is (segment, position).
class ChunkModel {
 public:
  using Chunk = std::pair<int, int>;
  using Chunks = std::vector<Chunk>;

  explicit ChunkModel(Bytes capacity) : capacity_(capacity) {}

  std::optional<int> allocate(Bytes bytes) {
    const int count = static_cast<int>((bytes + kPage - 1) / kPage);
    std::optional<Chunks> found = best_fit(count);
    int range = -1;
    if (!found) found = used_before(count, range);
    if (!found) found = stitched(count, range);
    if (!found && grow(count)) found = best_fit(count);
    if (!found) return std::nullopt;
    for (const Chunk& chunk : *found) free_[chunk] = false;
    blocks_[next_] = {*found, range};
    if (range >= 0) ranges_[static_cast<std::size_t>(range)].in_use = true;
    return next_++;
  }
  void free(int block) {
    for (const Chunk& chunk : blocks_[block].chunks) free_[chunk] = true;
    if (blocks_[block].range >= 0) ranges_[static_cast<std::size_t>(blocks_[block].range)].in_use = false;
    blocks_.erase(block);
  }
  Bytes reserved() const { return static_cast<Bytes>(free_.size()) * kPage; }
  std::uint64_t retries() const { return retries_; }
  const Chunks& chunks(int block) const { return blocks_.at(block).chunks; }

 private:
  struct Range {
    Chunks chunks;
    bool in_use = false;
  };
  struct Block {
    Chunks chunks;
    int range = -1;
  };

  // Runs of free chunks within a segment.
  std::vector<Chunks> runs() const {
    std::vector<Chunks> runs;
    for (const auto& [chunk, is_free] : free_) {
      if (!is_free) continue;
      const bool goes_on = !runs.empty() && runs.back().back() == Chunk{chunk.first, chunk.second - 1};
      if (!goes_on) runs.emplace_back();
      runs.back().push_back(chunk);
    }
    std::stable_sort(runs.begin(), runs.end(), [](const Chunks& a, const Chunks& b) { return a.size() < b.size(); });
    return runs;
  }
  static Chunks first(const Chunks& chunks, int count) { return {chunks.begin(), chunks.begin() + count}; }

  std::optional<Chunks> best_fit(int count) const {
    for (const Chunks& run : runs())
      if (static_cast<int>(run.size()) >= count) return first(run, count);
    return std::nullopt;
  }
  std::optional<Chunks> used_before(int count, int& range) const {
    const auto usable = [&](const Range& r) {
      return !r.in_use && std::all_of(r.chunks.begin(), r.chunks.end(), [&](const Chunk& chunk) {
        const auto found = free_.find(chunk);
        return found != free_.end() && found->second;
      });
    };
    for (std::size_t i = 0; i < ranges_.size(); ++i) {
      const int size = static_cast<int>(ranges_[i].chunks.size());
      if (size < count || size > 10 * count || !usable(ranges_[i])) continue;
      if (range < 0 || size < static_cast<int>(ranges_[static_cast<std::size_t>(range)].chunks.size()))
        range = static_cast<int>(i);
    }
    if (range < 0) return std::nullopt;
    return first(ranges_[static_cast<std::size_t>(range)].chunks, count);
  }
  std::optional<Chunks> stitched(int count, int& range) {
    std::vector<Chunks> all = runs();
    if (count < 256 || all.size() < 2) return std::nullopt;
    Chunks chunks;
    for (auto run = all.rbegin(); run != all.rend() && static_cast<int>(chunks.size()) < count; ++run)
      chunks.insert(chunks.end(), run->begin(), run->end());
    if (static_cast<int>(chunks.size()) < count) return std::nullopt;
    chunks.resize(static_cast<std::size_t>(count));
    range = static_cast<int>(ranges_.size());
    ranges_.push_back({chunks, true});
    return chunks;
  }
  bool grow(int count) {
    const int size = count < 5 ? 10 : count;
    if (reserved() + size * kPage > capacity_) {
      ++retries_;
      release();
      if (reserved() + size * kPage > capacity_) return false;
    }
    for (int i = 0; i < size; ++i) free_[{segments_, i}] = true;
    ++segments_;
    return true;
  }
  void release() {
    for (int segment = 0; segment < segments_; ++segment) {
      const auto mine = [&](const auto& entry) { return entry.first.first == segment; };
      const bool used = std::any_of(free_.begin(), free_.end(), [&](const auto& e) { return mine(e) && !e.second; });
      if (!used) std::erase_if(free_, mine);
    }
  }

  Bytes capacity_;
  std::map<Chunk, bool> free_;
  std::vector<Range> ranges_;
  std::map<int, Block> blocks_;
  int segments_ = 0, next_ = 0;
  std::uint64_t retries_ = 0;
};

Bytes some_large_size(std::mt19937_64& random) {
  switch (random() % 4) {
    case 0:
      return MiB(1) + 1 + static_cast<Bytes>(random() % MiB(12));
    case 1:
      return MiB(static_cast<Bytes>(random() % 100 + 2));
    default:
      return MiB(static_cast<Bytes>(random() % 500 + 300));
  }
}

RC_GTEST_PROP(StitchingAllocator, TakesTheChunksThatTheRulesSay, ()) {
  const Bytes capacity = GiB(*rc::gen::inRange<Bytes>(1, 5));
  StitchingAllocator a(capacity);
  ChunkModel model(capacity);
  std::mt19937_64 random(*rc::gen::arbitrary<std::uint64_t>());
  std::vector<std::pair<Address, int>> live;
  std::map<Address, ChunkModel::Chunk> places;  // chunks of both, as they were first seen to be the same
  for (int n = 0; n < 120; ++n) {
    if (!live.empty() && random() % 9 < 4) {
      const std::size_t i = random() % live.size();
      a.free(live[i].first);
      model.free(live[i].second);
      live.erase(live.begin() + static_cast<std::ptrdiff_t>(i));
      continue;
    }
    const Bytes bytes = some_large_size(random);
    const auto address = a.allocate(bytes, 0);
    const auto block = model.allocate(bytes);
    RC_ASSERT(address.has_value() == block.has_value());
    RC_ASSERT(a.usage().reserved == model.reserved());
    RC_ASSERT(a.events().retries == model.retries());
    if (!address) continue;
    live.emplace_back(*address, *block);
    ChunkModel::Chunks expected = model.chunks(*block);
    std::size_t at = 0;
    for (const RangeSet::Range& piece : a.pieces(*address))
      for (Bytes offset = 0; offset < piece.size; offset += kPage) {
        RC_ASSERT(at < expected.size());
        const auto [place, fresh] = places.try_emplace(piece.begin + static_cast<Address>(offset), expected[at]);
        RC_ASSERT(place->second == expected[at]);
        ++at;
      }
    RC_ASSERT(at == expected.size());
  }
}

// With small requests and several streams: nothing is handed out twice, and what is counted is there.
RC_GTEST_PROP(StitchingAllocator, BlocksInUseAreApart, ()) {
  const Bytes capacity = MiB(*rc::gen::inRange<Bytes>(30, 3000));
  StitchingAllocator a(capacity);
  std::mt19937_64 random(*rc::gen::arbitrary<std::uint64_t>());
  std::vector<Live> live;
  for (int n = 0; n < 200; ++n) {
    if (!live.empty() && random() % 9 < 4) {
      const std::size_t i = random() % live.size();
      a.free(live[i].address);
      live.erase(live.begin() + static_cast<std::ptrdiff_t>(i));
    } else {
      const Bytes bytes = random() % 3 == 0 ? static_cast<Bytes>(random() % MiB(1)) + 1 : some_large_size(random);
      if (const auto address = a.allocate(bytes, static_cast<std::uint16_t>(random() % 2)))
        live.push_back({*address, bytes});
    }
    std::vector<Live> pieces;
    Bytes requested = 0;
    for (const Live& block : live) {
      requested += block.bytes;
      for (const RangeSet::Range& piece : a.pieces(block.address))
        pieces.push_back({piece.begin, piece.size > 0 ? piece.size : block.bytes});
    }
    RC_ASSERT(apart(pieces));
    RC_ASSERT(a.usage().requested == requested);
    RC_ASSERT(a.usage().allocated >= requested);
    RC_ASSERT(a.usage().reserved >= a.usage().allocated);
    RC_ASSERT(a.usage().reserved <= capacity);
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
