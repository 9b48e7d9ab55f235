// Do the simple allocators count right, and is each found by its name?
#include "sim/allocator.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "sim/error.h"

namespace memwall {
namespace {

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

}  // namespace
}  // namespace memwall
