// Do private pools keep their memory to themselves, and for how long?
#include <gtest/gtest.h>

#include "tests/support/allocator_view.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

TEST(PytorchPools, APrivatePoolSharesNothing) {
  PytorchAllocator a(kUnlimited);
  const Address outside = get(a, 12 * M);
  a.free(outside);
  a.begin_pool(7);
  const Address inside = get(a, 12 * M);
  EXPECT_NE(inside, outside);
  const Address small = get(a, 512);
  a.free(inside);
  a.free(small);
  EXPECT_EQ(get(a, 12 * M), inside);
  a.free(inside);
  a.end_pool(7);
  EXPECT_EQ(get(a, 12 * M), outside);
  EXPECT_NE(get(a, 12 * M), inside);
  EXPECT_EQ(a.usage().reserved, 38 * M);
  std::vector<std::uint32_t> pools;
  for (const SegmentState& segment : a.segments()) pools.push_back(segment.private_pool);
  EXPECT_EQ(pools, (std::vector<std::uint32_t>{0, 7, 7, 0}));
}

TEST(PytorchPools, OnlyTheStreamsNamed) {
  PytorchAllocator a(kUnlimited);
  a.begin_pool(1, {3});
  get(a, 12 * M, 0);
  get(a, 12 * M, 3);
  a.end_pool(1);
  const auto segments = a.segments();
  EXPECT_EQ(segments[0].private_pool, 0u);
  EXPECT_EQ(segments[1].private_pool, 1u);
}

// Several may be open at once; the one begun last is asked first.
TEST(PytorchPools, SeveralAtOnce) {
  PytorchAllocator a(kUnlimited);
  a.begin_pool(1);
  a.begin_pool(2, {3});
  get(a, 12 * M, 0);
  get(a, 12 * M, 3);
  a.end_pool(2);
  get(a, 12 * M, 3);
  a.end_pool(1);
  get(a, 12 * M, 3);
  std::vector<std::uint32_t> pools;
  for (const SegmentState& segment : a.segments()) pools.push_back(segment.private_pool);
  EXPECT_EQ(pools, (std::vector<std::uint32_t>{1, 2, 1, 0}));
}

TEST(PytorchPools, KeptWhileInUse) {
  PytorchAllocator a(kUnlimited);
  a.begin_pool(1);
  a.free(get(a, 12 * M));
  a.end_pool(1);
  a.begin_pool(1);  // a second graph shares it
  a.end_pool(1);
  a.release_cached();
  EXPECT_EQ(a.usage().reserved, 12 * M);
  a.release_pool(1);
  a.release_cached();
  EXPECT_EQ(a.usage().reserved, 12 * M);
  a.release_pool(1);
  EXPECT_EQ(a.usage().reserved, 12 * M);
  a.release_cached();
  EXPECT_EQ(a.usage().reserved, 0);
}

// A capture keeps what a synchronization would free, and the default pools.
TEST(PytorchPools, UnusedOnesAreReleasedInACaptureToo) {
  PytorchAllocator a(kUnlimited);
  a.begin_pool(1);
  a.free(get(a, 12 * M));
  a.end_pool(1);
  a.release_pool(1);
  a.free(get(a, 14 * M));
  a.begin_capture();
  a.release_cached();
  EXPECT_EQ(a.usage().reserved, 14 * M);
  EXPECT_EQ(a.statistics().num_sync_all_streams, 0);
  a.end_capture();
}

// The default pools first, then private ones nobody uses.
TEST(PytorchPools, ReleasedLast) {
  PytorchAllocator a(kUnlimited);
  Told told;
  a.observe(&told);
  a.begin_pool(1);
  a.free(get(a, 12 * M));
  a.free(get(a, 512));
  a.end_pool(1);
  a.release_pool(1);
  const Address large = get(a, 14 * M);
  a.free(get(a, 11 * M));
  a.free(large);
  a.free(get(a, 512));
  told.take();
  a.release_cached();
  EXPECT_EQ(told.take(), (std::vector<std::string>{"free 12", "free 14", "free 2", "free 2", "free 12"}));
}

TEST(PytorchPools, RestoredAndReused) {
  PytorchAllocator a(kUnlimited);
  a.begin_pool(4);
  const Address inside = get(a, 12 * M);
  a.free(inside);
  a.end_pool(4);
  PytorchAllocator b(kUnlimited);
  b.restore(a.segments());
  EXPECT_NE(get(b, 12 * M), inside);
  b.release_cached();  // a pool of a recording may have a graph that uses it
  EXPECT_EQ(b.usage().reserved, 24 * M);
  b.begin_pool(4);
  EXPECT_EQ(get(b, 12 * M), inside);
  b.end_pool(4);
  b.free(inside);
  b.release_pool(4);
  b.release_cached();
  EXPECT_EQ(b.usage().reserved, 24 * M);
  b.release_pool(4);
  b.release_cached();
  EXPECT_EQ(b.usage().reserved, 12 * M);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
