// Does the fast caching allocator agree with the obvious one at every call, whatever the sequence?
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "sim/pytorch_allocator.h"
#include "tests/support/reference_allocator.h"

namespace memwall {
namespace {

// The whole range in every case: rapidcheck narrows ranges in its first cases otherwise.
template <typename T>
rc::Gen<T> wide(rc::Gen<T> generator) {
  return rc::gen::resize(rc::kNominalSize, std::move(generator));
}

// Sizes around the limits of the rules, and between them.
rc::Gen<Bytes> request() {
  const auto near = [](Bytes limit) { return rc::gen::inRange<Bytes>(limit - 1025, limit + 1026); };
  return rc::gen::oneOf(rc::gen::inRange<Bytes>(0, 2000), rc::gen::inRange<Bytes>(0, MiB(1)),
                        rc::gen::inRange<Bytes>(MiB(1), MiB(30)), near(MiB(1)), near(MiB(2)), near(MiB(10)),
                        near(MiB(20)), rc::gen::element<Bytes>(512, 1024, MiB(1), MiB(4), MiB(10), MiB(19)));
}

void require_equal(const PytorchAllocator& fast, const ReferenceAllocator& reference) {
  RC_ASSERT(fast.usage().allocated == reference.usage().allocated);
  RC_ASSERT(fast.usage().requested == reference.usage().requested);
  RC_ASSERT(fast.usage().reserved == reference.usage().reserved);
  RC_ASSERT(fast.events().device_mallocs == reference.events().device_mallocs);
  RC_ASSERT(fast.events().device_frees == reference.events().device_frees);
  RC_ASSERT(fast.events().retries == reference.events().retries);
}

void require_equal_blocks(const PytorchAllocator& fast, const ReferenceAllocator& reference) {
  const auto views = fast.blocks();
  RC_ASSERT(views.size() == reference.blocks().size());
  std::size_t i = 0;
  for (const auto& [address, block] : reference.blocks()) {
    const auto& view = views[i++];
    RC_ASSERT(view.address == address);
    RC_ASSERT(view.segment == block.segment);
    RC_ASSERT(view.size == block.size);
    RC_ASSERT(view.requested == block.requested);
    RC_ASSERT(view.stream == block.stream);
    RC_ASSERT(view.small_pool == block.small_pool);
    RC_ASSERT(view.in_use == block.in_use);
  }
}

void run(Bytes capacity, std::size_t steps) {
  PytorchAllocator fast(capacity);
  ReferenceAllocator reference(capacity);
  std::vector<Address> live;
  for (std::size_t i = 0; i < steps; ++i) {
    // More frees than allocations in some stretches, so that the pools drain and refill.
    const bool give_back = !live.empty() && *wide(rc::gen::inRange(0, 100)) < ((i / 40) % 2 ? 65 : 40);
    if (give_back) {
      const auto victim = *wide(rc::gen::inRange<std::size_t>(0, live.size()));
      fast.free(live[victim]);
      reference.free(live[victim]);
      live.erase(live.begin() + static_cast<std::ptrdiff_t>(victim));
    } else {
      const Bytes bytes = *wide(request());
      const auto stream = *wide(rc::gen::inRange<std::uint16_t>(0, 3));
      const auto address = fast.allocate(bytes, stream);
      RC_ASSERT(address == reference.allocate(bytes, stream));
      if (address)
        live.push_back(*address);
      else if (*wide(rc::gen::inRange(0, 4)) == 0) {
        fast.set_capacity(capacity += MiB(16));
        reference.set_capacity(capacity);
      }
    }
    require_equal(fast, reference);
    RC_ASSERT(fast.usage().reserved <= capacity);
    RC_ASSERT(fast.usage().allocated <= fast.usage().reserved);
  }
  require_equal_blocks(fast, reference);
  for (const Address address : live) fast.free(address);
  RC_ASSERT(fast.usage().allocated == 0);
  RC_ASSERT(fast.usage().requested == 0);
  fast.release_cached();  // everything joined again, so everything can go back
  RC_ASSERT(fast.usage().reserved == 0);
  RC_ASSERT(fast.blocks().empty());
}

RC_GTEST_PROP(PytorchAllocatorProperty, AgreesWithTheReference, ()) { run(Bytes{1} << 50, 300); }

RC_GTEST_PROP(PytorchAllocatorProperty, AgreesWithTheReferenceWhenMemoryRunsOut, ()) {
  run(MiB(*wide(rc::gen::inRange<Bytes>(1, 200))), 300);
}

}  // namespace
}  // namespace memwall
