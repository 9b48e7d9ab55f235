// The CUDA driver's stream-ordered pool, as PyTorch's backend cudaMallocAsync uses it.
//
// What NVIDIA documents (CUDA Programming Guide, "Stream-Ordered Memory Allocator"; Runtime API, cudaMemPoolAttr):
// - A free piece serves later requests of its own stream at once, and those of other streams by three policies, all on
//   by default: follow event dependencies, reuse what has completed, insert a dependency. The last one always applies,
//   so a free piece serves any stream; what such a dependency costs in time is not charged here.
// - A pool keeps what it has up to its release threshold; PyTorch sets that to no limit, so reserved never falls.
// - Physical memory comes in 2 MiB granules and is mapped behind virtual addresses; where a request finds no
//   contiguous free piece, the driver remaps unused memory of the pool before it obtains more.
//
// What is a model: the driver's placement is not documented. Here requests are rounded up to 512 bytes and take the
// smallest free piece, lowest address first. Where none is large enough, the free piece at the end of the pool is
// extended by pages; these are taken from wholly free pages elsewhere in the pool, largest free range first, and only
// what is still missing is obtained anew. So nothing is lost but the unused parts of pages. Real pools have been seen
// to lose more (pytorch/pytorch issue 110194; rapidsai/rmm issue 1245): take `reserved` as the least that such a pool
// needs. Settings of the caching allocator (splitting, rounding, garbage collection) do not exist here.
#include <algorithm>
#include <cassert>
#include <unordered_map>
#include <vector>

#include "sim/memory/range_set.h"
#include "sim/memory/rounding.h"

namespace memwall {
namespace {

constexpr Bytes kPoolQuantum = 512;
constexpr Bytes kPage = MiB(2);
// Far beyond any machine; keeps the arithmetic below from overflowing on a hostile size.
constexpr Bytes kLargestPoolRequest = Bytes{1} << 59;
constexpr Address kFirst = Address{1} << 30;
constexpr Address kLast = Address{1} << 62;

class CudaAsyncAllocator final : public Allocator {
 public:
  explicit CudaAsyncAllocator(Bytes capacity) : capacity_(capacity) {}

  std::optional<Address> allocate(Bytes bytes, std::uint16_t) override {
    assert(bytes >= 0);
    if (bytes == 0) return Address{0};
    if (bytes > kLargestPoolRequest) return std::nullopt;
    const Bytes size = round_up(bytes, kPoolQuantum);
    std::optional<RangeSet::Range> piece = free_.best_fit(size);
    if (!piece) piece = extend(size);
    if (!piece) return std::nullopt;
    free_.erase({piece->begin, size});
    in_use_.emplace(piece->begin, Block{size, bytes});
    usage_.allocated += size;
    usage_.requested += bytes;
    return piece->begin;
  }

  void free(Address address) override {
    if (address == 0) return;
    const auto found = in_use_.find(address);
    assert(found != in_use_.end());
    usage_.allocated -= found->second.size;
    usage_.requested -= found->second.requested;
    free_.insert({address, found->second.size});
    in_use_.erase(found);
  }

  const Usage& usage() const override { return usage_; }
  const AllocatorEvents& events() const override { return events_; }
  void set_capacity(Bytes capacity) override { capacity_ = capacity; }

 private:
  struct Block {
    Bytes size = 0, requested = 0;
  };

  // The free piece at the end of the pool, made large enough; nothing has changed where that cannot be.
  std::optional<RangeSet::Range> extend(Bytes size) {
    const std::optional<RangeSet::Range> tail = free_.at(end_ - 1);
    const Address begin = tail ? tail->begin : end_;
    const Bytes missing = round_up(size - (tail ? tail->size : 0), kPage);
    if (end_ + static_cast<Address>(missing) > kLast) return std::nullopt;
    const std::vector<RangeSet::Range> pages = free_pages(missing, begin);
    Bytes remapped = 0;
    for (const RangeSet::Range& range : pages) remapped += range.size;
    const Bytes obtained = missing - remapped;
    if (obtained > 0 && usage_.reserved + obtained > capacity_) return std::nullopt;
    for (const RangeSet::Range& range : pages) free_.erase(range);
    if (obtained > 0) ++events_.device_mallocs;
    usage_.reserved += obtained;
    free_.insert({end_, missing});
    end_ += static_cast<Address>(missing);
    return free_.at(begin);
  }

  // Wholly free pages below `limit`, at most `wanted` bytes of them.
  std::vector<RangeSet::Range> free_pages(Bytes wanted, Address limit) const {
    std::vector<RangeSet::Range> pages;
    for (auto range = free_.by_size().rbegin(); range != free_.by_size().rend() && wanted > 0; ++range) {
      if (range->first < kPage) break;
      if (range->second >= limit) continue;
      const auto begin = static_cast<Address>(round_up(static_cast<Bytes>(range->second), kPage));
      const Address end = (range->second + static_cast<Address>(range->first)) / kPage * kPage;
      if (end <= begin) continue;
      pages.push_back({begin, std::min(wanted, static_cast<Bytes>(end - begin))});
      wanted -= pages.back().size;
    }
    return pages;
  }

  Bytes capacity_;
  Usage usage_;
  AllocatorEvents events_;
  RangeSet free_;  // mapped and not in use
  std::unordered_map<Address, Block> in_use_;
  Address end_ = kFirst;  // of the addresses used so far; pages that move leave theirs for good
};

}  // namespace

std::unique_ptr<Allocator> make_cuda_async_allocator(Bytes capacity) {
  return std::make_unique<CudaAsyncAllocator>(capacity);
}

}  // namespace memwall
