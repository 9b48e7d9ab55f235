// Does the stitching allocator join free pieces by GMLake's rules, and only where they apply?
#include "sim/memory/stitching_allocator.h"

#include <gtest/gtest.h>

#include <limits>

namespace memwall {
namespace MEMWALL_TEST_FILE {

// Two free pieces of 400 MiB, with a block in use between them.
struct Apart {
  StitchingAllocator a{GiB(2)};
  Address low = *a.allocate(MiB(400), 0), pin = *a.allocate(MiB(200), 0), high = *a.allocate(MiB(400), 0);
  Apart() {
    a.free(low);
    a.free(high);
  }
};

TEST(StitchingAllocator, LargeSizesAreWholeChunks) {
  StitchingAllocator a(GiB(1));
  ASSERT_TRUE(a.allocate(MiB(1) + 1, 0));
  EXPECT_EQ(a.usage().allocated, MiB(2));
  EXPECT_EQ(a.usage().requested, MiB(1) + 1);
  EXPECT_EQ(a.usage().reserved, MiB(20));
  ASSERT_TRUE(a.allocate(MiB(17), 0));  // 18 MiB: what is left of the segment
  EXPECT_EQ(a.usage().reserved, MiB(20));
  ASSERT_TRUE(a.allocate(MiB(11), 0));
  EXPECT_EQ(a.usage().reserved, MiB(32));
}

TEST(StitchingAllocator, SmallOnesAsInTheCachingAllocator) {
  StitchingAllocator a(MiB(22));
  const auto small = a.allocate(100, 0);
  ASSERT_TRUE(small);
  EXPECT_EQ(a.usage().allocated, 512);
  EXPECT_EQ(a.usage().reserved, MiB(2));
  ASSERT_TRUE(a.allocate(MiB(20), 0));
  EXPECT_FALSE(a.allocate(MiB(2), 0));
  a.free(*small);
  EXPECT_EQ(a.usage().allocated, MiB(20));
  EXPECT_TRUE(a.allocate(MiB(1), 0));
  EXPECT_EQ(a.usage().reserved, MiB(22));
}

// A cached large segment makes room for a small one, and the other way round.
TEST(StitchingAllocator, BothPoolsShareTheCapacity) {
  StitchingAllocator a(MiB(20));
  a.free(*a.allocate(MiB(20), 0));
  EXPECT_TRUE(a.allocate(1, 0));
  EXPECT_EQ(a.usage().reserved, MiB(2));
  EXPECT_EQ(a.events().retries, 1u);
  StitchingAllocator b(MiB(20));
  b.free(*b.allocate(1, 0));
  EXPECT_TRUE(b.allocate(MiB(20), 0));
  EXPECT_EQ(b.usage().reserved, MiB(20));
  EXPECT_EQ(b.events().retries, 1u);
}

TEST(StitchingAllocator, StitchesFrom512MebibytesOn) {
  Apart s;
  EXPECT_EQ(s.a.usage().reserved, MiB(1000));
  const auto block = s.a.allocate(MiB(600), 0);
  ASSERT_TRUE(block);
  EXPECT_EQ(s.a.usage().reserved, MiB(1000));
  EXPECT_EQ(s.a.usage().allocated, MiB(800));
  const auto pieces = s.a.pieces(*block);
  ASSERT_EQ(pieces.size(), 2u);
  // Of equal sizes the one at the higher address comes first, as the set is walked from its end.
  EXPECT_EQ(pieces[0].begin, s.high);
  EXPECT_EQ(pieces[0].size, MiB(400));
  EXPECT_EQ(pieces[1].begin, s.low);
  EXPECT_EQ(pieces[1].size, MiB(200));
  EXPECT_EQ(s.a.allocate(MiB(200), 0), s.low + MiB(200));
}

TEST(StitchingAllocator, NotBelow) {
  Apart s;
  ASSERT_TRUE(s.a.allocate(MiB(510), 0));
  EXPECT_EQ(s.a.usage().reserved, MiB(1510));
}

TEST(StitchingAllocator, NotFromOtherStreams) {
  Apart s;
  ASSERT_TRUE(s.a.allocate(MiB(600), 1));
  EXPECT_EQ(s.a.usage().reserved, MiB(1600));
}

TEST(StitchingAllocator, AStitchedRangeServesAgain) {
  Apart s;
  const auto block = s.a.allocate(MiB(600), 0);
  s.a.free(*block);
  EXPECT_EQ(s.a.allocate(MiB(402), 0), block);  // no piece is that large; below 512 MiB nothing new is stitched
  EXPECT_EQ(s.a.usage().reserved, MiB(1000));
  EXPECT_EQ(s.a.pieces(*block)[1].size, MiB(2));
}

TEST(StitchingAllocator, UnlessItIsMoreThanTenTimesTheRequest) {
  StitchingAllocator a(GiB(3));
  // Free pieces of at most 50 MiB.
  std::vector<Address> blocks;
  for (int i = 0; i < 25; ++i) blocks.push_back(*a.allocate(MiB(50), 0));
  for (int i = 0; i < 25; ++i) a.free(blocks[static_cast<std::size_t>(i)]);
  const auto stitched = a.allocate(MiB(600), 0);
  ASSERT_TRUE(stitched);
  EXPECT_EQ(a.usage().reserved, MiB(1250));
  // What the stitched range left, taken away.
  for (int i = 0; i < 13; ++i) ASSERT_TRUE(a.allocate(MiB(50), 0));
  a.free(*stitched);
  ASSERT_EQ(a.allocate(MiB(60), 0), stitched);
  a.free(*stitched);
  EXPECT_NE(a.allocate(MiB(58), 0), stitched);
  EXPECT_EQ(a.usage().reserved, MiB(1308));
}

TEST(StitchingAllocator, WhatGoesBackIsNotStitchedAnyMore) {
  Apart s;
  const auto block = s.a.allocate(MiB(600), 0);
  s.a.free(*block);
  s.a.release_cached();
  EXPECT_EQ(s.a.usage().reserved, MiB(200));
  EXPECT_EQ(s.a.events().device_frees, 2u);
  EXPECT_NE(s.a.allocate(MiB(600), 0), block);
  EXPECT_EQ(s.a.usage().reserved, MiB(800));
}

// A range in use with its first chunks, while the segment of its last ones goes back.
TEST(StitchingAllocator, AStaleRangeIsForgottenWhenItIsFreed) {
  Apart s;
  const auto whole = s.a.allocate(MiB(600), 0);
  s.a.free(*whole);
  const auto cover = s.a.allocate(MiB(400), 0);  // the piece at the lower address, which comes last in the range
  ASSERT_EQ(cover, s.low);
  s.a.free(*cover);
  const auto part = s.a.allocate(MiB(402), 0);
  ASSERT_EQ(part, whole);
  s.a.release_cached();  // both segments are partly in use
  EXPECT_EQ(s.a.usage().reserved, MiB(1000));
  s.a.free(*part);
  s.a.release_cached();
  EXPECT_EQ(s.a.usage().reserved, MiB(200));
}

TEST(StitchingAllocator, ReleasesAndTriesOnceMore) {
  StitchingAllocator a(MiB(100));
  a.free(*a.allocate(MiB(40), 0));
  ASSERT_TRUE(a.allocate(MiB(80), 0));
  EXPECT_EQ(a.usage().reserved, MiB(80));
  EXPECT_EQ(a.events().retries, 1u);
  EXPECT_EQ(a.events().device_frees, 1u);
  EXPECT_FALSE(a.allocate(MiB(30), 0));
  EXPECT_EQ(a.usage().allocated, MiB(80));
}

TEST(StitchingAllocator, NothingAndTooMuch) {
  StitchingAllocator a(Bytes{1} << 60);
  const auto nothing = a.allocate(0, 0);
  ASSERT_TRUE(nothing);
  a.free(*nothing);
  EXPECT_EQ(a.usage().reserved, 0);
  EXPECT_FALSE(a.allocate(std::numeric_limits<Bytes>::max(), 0));
  for (int i = 0; i < 20; ++i) {
    const auto block = a.allocate((Bytes{1} << 58) + MiB(2) * i, 0);
    if (block) a.free(*block);
  }
  EXPECT_LE(a.usage().reserved, Bytes{1} << 60);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
