// Two orders of release in which the caching allocator once differed from its reference; PyTorch's source decided.
#include <gtest/gtest.h>

#include "tests/support/reference_allocator.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

constexpr Bytes M = MiB(1);

template <typename Subject>
class PytorchReleaseOrder : public testing::Test {};

using Subjects = testing::Types<PytorchAllocator, ReferenceAllocator>;
TYPED_TEST_SUITE(PytorchReleaseOrder, Subjects);

// Blocks that wait are completed in the order in which they were freed, whichever of them were completed before. Each
// of these three then joins the free block before it, and no further free block comes into being on the way.
TYPED_TEST(PytorchReleaseOrder, ASynchronizationCompletesTheFirstFreedFirst) {
  TypeParam allocator(GiB(1));
  std::vector<Address> blocks;
  for (int i = 0; i < 5; ++i) blocks.push_back(allocator.allocate(2 * M, 0).value());
  for (int i = 0; i < 4; ++i) allocator.request_free(blocks[static_cast<std::size_t>(i)]);
  allocator.complete_free(blocks[0]);
  const auto before = allocator.statistics().inactive_split[0];
  allocator.release_cached();
  EXPECT_EQ(allocator.statistics().inactive_split[0].allocated, before.allocated);
  EXPECT_EQ(allocator.statistics().inactive_split_bytes[0].current, 18 * M);
}

// Where the smallest oversize block that would suffice cannot be released, as it is expandable, a larger one is not
// looked for: release_available_cached_blocks goes on below it, finds nothing, and the whole cache is released.
TYPED_TEST(PytorchReleaseOrder, AnExpandableBlockHidesLargerOversizeBlocks) {
  AllocatorSettings settings;
  settings.max_split_size = 24 * M;
  TypeParam allocator(80 * M, nullptr, settings);
  using Use = BlockState::Use;
  const Address first = Address{1} << 32, second = Address{1} << 33;
  SegmentState expandable{first, 100 * M, 0, false, true, 0, {}};
  expandable.blocks = {{first, 40 * M, 0, Use::free}, {first + (40u << 20), 60 * M, 0, Use::unmapped}};
  SegmentState whole{second, 40 * M, 0, false, false, 0, {}};
  whole.blocks = {{second, 40 * M, 0, Use::free}};
  // Of equal sizes the one at the lower address is the first.
  allocator.restore({expandable, whole});
  EXPECT_TRUE(allocator.allocate(3 * M, 0).has_value());
  EXPECT_EQ(allocator.events().retries, 1u);
  EXPECT_EQ(allocator.usage().reserved, 20 * M);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
