// An allocator that only looks up what was planned.
#include <cassert>
#include <unordered_map>
#include <utility>

#include "sim/memory/arena_plan.h"

namespace memwall {
namespace {

class PlannedAllocator final : public Allocator {
 public:
  PlannedAllocator(const std::vector<Lifetime>& lifetimes, ArenaPlan plan, Bytes capacity, Bytes alignment)
      : lifetimes_(lifetimes), plan_(std::move(plan)), capacity_(capacity), alignment_(alignment) {
    usage_.reserved = plan_.size;
    events_.device_mallocs = plan_.size > 0 ? 1 : 0;
  }

  std::optional<Address> allocate(Bytes bytes, std::uint16_t) override {
    if (bytes > 0 && plan_.size > capacity_) return std::nullopt;
    assert(next_ < lifetimes_.size() && lifetimes_[next_].bytes == bytes);
    account(lifetimes_[next_].bytes, 1);
    return next_++;
  }

  void free(Address address) override {
    assert(address < next_);
    account(lifetimes_[address].bytes, -1);
  }

  const Usage& usage() const override { return usage_; }
  const AllocatorEvents& events() const override { return events_; }
  void set_capacity(Bytes capacity) override { capacity_ = capacity; }

 private:
  void account(Bytes bytes, int sign) {
    usage_.allocated += sign * ((bytes + alignment_ - 1) / alignment_ * alignment_);
    usage_.requested += sign * bytes;
  }

  std::vector<Lifetime> lifetimes_;
  ArenaPlan plan_;
  Bytes capacity_, alignment_;
  Usage usage_;
  AllocatorEvents events_;
  std::size_t next_ = 0;  // lifetime of the next request; an address here is the number of a lifetime
};

}  // namespace

std::unique_ptr<Allocator> make_planned_allocator(const std::vector<Lifetime>& lifetimes, ArenaPlan plan,
                                                  Bytes capacity, Bytes alignment) {
  return std::make_unique<PlannedAllocator>(lifetimes, std::move(plan), capacity, alignment);
}

}  // namespace memwall
