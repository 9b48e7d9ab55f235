// Memory without rounding or fragmentation: a request fits if the bytes are there.
#include <cassert>
#include <vector>

#include "sim/memory/allocator.h"

namespace memwall {
namespace {

class IdealAllocator final : public Allocator {
 public:
  explicit IdealAllocator(Bytes capacity) : capacity_(capacity) {}

  std::optional<Address> allocate(Bytes bytes, std::uint16_t) override {
    assert(bytes >= 0);
    if (bytes > 0 && bytes > capacity_ - usage_.allocated) return std::nullopt;
    account(bytes);
    if (unused_.empty()) {
      sizes_.push_back(bytes);
      return sizes_.size() - 1;
    }
    const Address address = unused_.back();
    unused_.pop_back();
    sizes_[address] = bytes;
    return address;
  }

  void free(Address address) override {
    assert(address < sizes_.size() && sizes_[address] >= 0);
    account(-sizes_[address]);
    sizes_[address] = -1;
    unused_.push_back(address);
  }

  const Usage& usage() const override { return usage_; }
  const AllocatorEvents& events() const override { return events_; }
  void set_capacity(Bytes capacity) override { capacity_ = capacity; }

 private:
  void account(Bytes bytes) {
    usage_.allocated += bytes;
    usage_.requested += bytes;
    usage_.reserved += bytes;
  }

  Bytes capacity_;
  Usage usage_;
  AllocatorEvents events_;       // stays 0: no segments
  std::vector<Bytes> sizes_;     // by address, which is only a number here; -1 = free
  std::vector<Address> unused_;  // addresses to be given out again
};

}  // namespace

std::unique_ptr<Allocator> make_ideal_allocator(Bytes capacity) { return std::make_unique<IdealAllocator>(capacity); }

}  // namespace memwall
