// Page-locked host memory as PyTorch hands it out: a request is rounded up to a power
// of two, blocks are neither split nor joined, and freed ones are kept for the next
// request of the same power. Nothing goes back to the system by itself, not even when
// memory runs out. With pinned_reserve_segment_size_mb the first request pins that much in
// one piece, and new blocks are cut from it, one behind the other, as long as they fit.
// Source: pytorch/pytorch, aten/src/ATen/core/CachingHostAllocator.h and
// aten/src/ATen/cuda/CachingHostAllocator.cpp.
//
// A block that streams were recorded on is kept from reuse by PyTorch until events on them
// have completed, which a later request looks for. Nobody records streams on pinned storages
// here (a trace frees one when its copies are done), so a freed block serves the next request.
#include <array>
#include <bit>
#include <cassert>
#include <utility>
#include <vector>

#include "sim/memory/allocator.h"

namespace memwall {
namespace {

constexpr int kPowers = 62;

class PinnedAllocator final : public Allocator {
 public:
  PinnedAllocator(Bytes capacity, Bytes reserve_segment) : capacity_(capacity), reserve_(reserve_segment) {}

  std::optional<Address> allocate(Bytes bytes, std::uint16_t) override {
    assert(bytes >= 0);
    if (bytes == 0) return kNothing;
    const int power = std::bit_width(static_cast<std::uint64_t>(bytes - 1));
    if (power >= kPowers) return std::nullopt;
    std::vector<Address>& cached = free_[power];
    Address address;
    if (!cached.empty()) {
      address = cached.back();
      cached.pop_back();
    } else {
      if (!pin(size_of(power))) return std::nullopt;
      address = blocks_.size();
      blocks_.push_back({power, 0});
    }
    blocks_[address].requested = bytes;
    usage_.allocated += size_of(power);
    usage_.requested += bytes;
    return address;
  }

  void free(Address address) override {
    if (address == kNothing) return;
    assert(address < blocks_.size() && blocks_[address].requested > 0);
    Block& block = blocks_[address];
    usage_.allocated -= size_of(block.power);
    usage_.requested -= block.requested;
    block.requested = 0;
    free_[block.power].push_back(address);
  }

  const Usage& usage() const override { return usage_; }
  const AllocatorEvents& events() const override { return events_; }
  void set_capacity(Bytes capacity) override { capacity_ = capacity; }

 private:
  static constexpr Address kNothing = ~Address{0};  // of a request of 0 bytes

  struct Block {
    int power = 0;
    Bytes requested = 0;  // 0 = cached
  };

  static Bytes size_of(int power) { return Bytes{1} << power; }

  bool pin(Bytes bytes) {
    if (reserve_ > 0) {
      if (!obtain(reserve_)) return false;
      left_in_segment_ = std::exchange(reserve_, 0);
    }
    if (bytes > left_in_segment_) return obtain(bytes);
    left_in_segment_ -= bytes;
    return true;
  }

  bool obtain(Bytes bytes) {
    if (bytes > capacity_ - usage_.reserved) return false;
    usage_.reserved += bytes;
    ++events_.device_mallocs;
    return true;
  }

  Bytes capacity_;
  Bytes reserve_;  // still to be pinned ahead
  Bytes left_in_segment_ = 0;
  Usage usage_;
  AllocatorEvents events_;
  std::vector<Block> blocks_;  // by address, which is only a number here
  std::array<std::vector<Address>, kPowers> free_;
};

// cudaHostAlloc and cudaFreeHost, or memory that the program registers itself: nothing is kept.
class UnpooledPinnedAllocator final : public Allocator {
 public:
  explicit UnpooledPinnedAllocator(Bytes capacity) : capacity_(capacity) {}

  std::optional<Address> allocate(Bytes bytes, std::uint16_t) override {
    assert(bytes >= 0);
    if (bytes > capacity_ - usage_.reserved) return std::nullopt;
    const Bytes size = (bytes + kHostPage - 1) / kHostPage * kHostPage;
    if (size > capacity_ - usage_.reserved) return std::nullopt;
    change(bytes, size);
    if (size > 0) ++events_.device_mallocs;
    const Address address = requested_.size();
    requested_.push_back(bytes);
    return address;
  }

  void free(Address address) override {
    assert(address < requested_.size());
    const Bytes bytes = requested_[address];
    if (bytes == 0) return;
    change(-bytes, -((bytes + kHostPage - 1) / kHostPage * kHostPage));
    ++events_.device_frees;
  }

  const Usage& usage() const override { return usage_; }
  const AllocatorEvents& events() const override { return events_; }
  void set_capacity(Bytes capacity) override { capacity_ = capacity; }

 private:
  static constexpr Bytes kHostPage = 4096;  // of Linux on x86-64

  void change(Bytes requested, Bytes size) {
    usage_.requested += requested;
    usage_.allocated += size;
    usage_.reserved += size;
  }

  Bytes capacity_;
  Usage usage_;
  AllocatorEvents events_;
  std::vector<Bytes> requested_;  // by address, which is only a number here
};

}  // namespace

std::unique_ptr<Allocator> make_unpooled_pinned_allocator(Bytes capacity) {
  return std::make_unique<UnpooledPinnedAllocator>(capacity);
}

std::unique_ptr<Allocator> make_pinned_allocator(Bytes capacity, Bytes reserve_segment) {
  return std::make_unique<PinnedAllocator>(capacity, reserve_segment);
}

}  // namespace memwall
