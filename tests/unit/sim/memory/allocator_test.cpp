// Do the simple allocators count right, and is each found by its name?
#include "sim/memory/allocator.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "sim/error.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

TEST(IdealAllocator, LosesNothing) {
  const auto a = make_ideal_allocator(1000);
  const auto first = a->allocate(600, 0), second = a->allocate(400, 1);
  ASSERT_TRUE(first && second);
  EXPECT_NE(*first, *second);
  EXPECT_FALSE(a->allocate(1, 0));
  a->free(*first);
  EXPECT_EQ(a->usage().allocated, 400);
  EXPECT_EQ(a->usage().requested, 400);
  EXPECT_EQ(a->usage().reserved, 400);
  EXPECT_TRUE(a->allocate(599, 0));
  EXPECT_TRUE(a->allocate(1, 0));
  EXPECT_FALSE(a->allocate(1, 0));
  a->set_capacity(1001);
  EXPECT_TRUE(a->allocate(1, 0));
  EXPECT_EQ(a->usage().reserved, 1001);
}

TEST(IdealAllocator, NothingAlwaysFits) {
  const auto a = make_ideal_allocator(10);
  ASSERT_TRUE(a->allocate(10, 0));
  a->set_capacity(5);
  EXPECT_TRUE(a->allocate(0, 0));
  EXPECT_FALSE(a->allocate(1, 0));
}

// 65 MiB cost 128 MiB of host memory.
TEST(PinnedAllocator, RoundsUpToAPowerOfTwo) {
  const auto a = make_pinned_allocator(MiB(300));
  const auto block = a->allocate(MiB(65), 0);
  ASSERT_TRUE(block);
  EXPECT_EQ(a->usage().allocated, MiB(128));
  EXPECT_EQ(a->usage().requested, MiB(65));
  ASSERT_TRUE(a->allocate(MiB(128), 0));
  EXPECT_EQ(a->usage().reserved, MiB(256));
  ASSERT_TRUE(a->allocate(1, 0));
  EXPECT_EQ(a->usage().reserved, MiB(256) + 1);
}

TEST(PinnedAllocator, KeepsFreedBlocksForTheSamePowerOnly) {
  const auto a = make_pinned_allocator(MiB(256));
  const auto block = a->allocate(MiB(100), 0);
  ASSERT_TRUE(block);
  a->free(*block);
  EXPECT_EQ(a->usage().allocated, 0);
  EXPECT_EQ(a->usage().requested, 0);
  EXPECT_EQ(a->usage().reserved, MiB(128));
  EXPECT_EQ(a->allocate(MiB(65), 2), block);
  a->free(*block);
  ASSERT_TRUE(a->allocate(MiB(64), 0));  // not the cached 128 MiB
  EXPECT_EQ(a->usage().reserved, MiB(192));
  EXPECT_FALSE(a->allocate(MiB(129), 0));  // nor does the cached block make room
  EXPECT_EQ(a->usage().reserved, MiB(192));
}

TEST(PinnedAllocator, CutsBlocksFromASegmentPinnedAhead) {
  const auto a = make_pinned_allocator(MiB(200), MiB(100));
  EXPECT_EQ(a->usage().reserved, 0);
  const auto first = a->allocate(MiB(33), 0);
  ASSERT_TRUE(first);
  EXPECT_EQ(a->usage().reserved, MiB(100));
  ASSERT_TRUE(a->allocate(MiB(32), 0));
  EXPECT_EQ(a->usage().reserved, MiB(100));
  ASSERT_TRUE(a->allocate(MiB(8), 0));  // 4 MiB are left of the segment
  EXPECT_EQ(a->usage().reserved, MiB(108));
  a->free(*first);
  EXPECT_EQ(a->allocate(MiB(64), 0), first);
  EXPECT_EQ(a->usage().reserved, MiB(108));
  EXPECT_EQ(a->events().device_mallocs, 2u);
  EXPECT_FALSE(make_pinned_allocator(MiB(50), MiB(100))->allocate(1, 0));
}

TEST(PinnedAllocator, NothingAndTooMuch) {
  const auto a = make_pinned_allocator(Bytes{1} << 60);
  const auto nothing = a->allocate(0, 0);
  ASSERT_TRUE(nothing);
  a->free(*nothing);
  EXPECT_EQ(a->usage().reserved, 0);
  EXPECT_FALSE(a->allocate(std::numeric_limits<Bytes>::max(), 0));
}

TEST(MakeAllocator, ByName) {
  EXPECT_EQ(make_allocator("pytorch", MiB(10))->usage().reserved, 0);
  const auto ideal = make_allocator("ideal", 1);
  ideal->allocate(1, 0);
  EXPECT_EQ(ideal->usage().reserved, 1);
  try {
    make_allocator("pytroch", 1);
    FAIL() << "an unknown name must be refused";
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("Did you mean 'pytorch'?"), std::string::npos) << error.what();
  }
}

TEST(MakeAllocator, EveryNameThatIsListed) {
  EXPECT_EQ(allocator_names().front(), "pytorch");
  for (const std::string& name : allocator_names()) {
    const auto allocator = make_allocator(name, GiB(1));
    const auto block = allocator->allocate(MiB(3), 0);
    ASSERT_TRUE(block) << name;
    EXPECT_EQ(allocator->usage().requested, MiB(3)) << name;
    EXPECT_GE(allocator->usage().reserved, MiB(3)) << name;
    allocator->free(*block);
    EXPECT_EQ(allocator->usage().allocated, 0) << name;
    EXPECT_FALSE(allocator->allocate(GiB(1) + 1, 0)) << name;
  }
}

// backend:cudaMallocAsync is another allocator: 3 MiB take two pages there, a segment of 20 MiB here.
TEST(MakeAllocator, TheBackendIsASettingOfPyTorch) {
  AllocatorSettings settings;
  const auto native = make_allocator("pytorch", GiB(1), settings);
  native->allocate(MiB(3), 0);
  EXPECT_EQ(native->usage().reserved, MiB(20));
  settings.backend = AllocatorSettings::Backend::cuda_malloc_async;
  const auto async = make_allocator("pytorch", GiB(1), settings);
  async->allocate(MiB(3), 0);
  EXPECT_EQ(async->usage().reserved, MiB(4));
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
