// Does a request that the cache cannot serve retry in PyTorch's order, and do oversize blocks, the memory
// fraction and garbage collection act as they should?
#include <gtest/gtest.h>

#include "tests/support/allocator_view.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

using Words = std::vector<std::string>;

AllocatorSettings split_below(Bytes size) {
  AllocatorSettings settings;
  settings.max_split_size = size;
  return settings;
}

// Golden vector 3, as the observer sees it.
TEST(PytorchRetries, RefusedReleasedRefused) {
  PytorchAllocator a(100 * M);
  Told told;
  a.observe(&told);
  const Address first = get(a, 60 * M);
  get(a, 30 * M);
  a.free(first);
  const Address third = get(a, 20 * M);
  get(a, 20 * M);
  a.free(third);
  EXPECT_EQ(told.take(), (Words{"alloc 60", "alloc 30"}));
  EXPECT_FALSE(a.allocate(45 * M, 0).has_value());
  EXPECT_EQ(told.take(), (Words{"refused 46", "release_cached 0", "refused 46", "oom 45"}));
  EXPECT_EQ(a.statistics().num_ooms, 1);
  EXPECT_EQ(a.statistics().num_alloc_retries, 1);
  EXPECT_EQ(a.statistics().num_sync_all_streams, 1);
  EXPECT_EQ(free_sizes(a), (std::vector<Bytes>{20 * M, 20 * M}));
}

// Golden vector 7.
TEST(PytorchRetries, OversizeBlocksAreNeitherSplitNorWasted) {
  PytorchAllocator a(kUnlimited, nullptr, split_below(100 * M));
  const Address large = get(a, 150 * M);
  a.free(large);
  get(a, 90 * M);
  EXPECT_EQ(a.usage().reserved, 240 * M);
  EXPECT_EQ(get(a, 140 * M), large);
  EXPECT_EQ(a.usage().allocated, 240 * M);
  a.free(large);
  get(a, 129 * M);
  EXPECT_EQ(a.usage().reserved, 370 * M);
  EXPECT_EQ(get(a, 131 * M), large);  // 150 < 131 + 20
}

TEST(PytorchRetries, NonSplitRoundingSaysHowMuchMayBeWasted) {
  AllocatorSettings settings = split_below(100 * M);
  settings.max_non_split_rounding = 30 * M;
  PytorchAllocator a(kUnlimited, nullptr, settings);
  const Address large = get(a, 150 * M);
  a.free(large);
  EXPECT_NE(get(a, 120 * M), large);
  EXPECT_EQ(get(a, 121 * M), large);
}

// The smallest oversize block that makes room alone; no retry is counted.
TEST(PytorchRetries, OneOversizeBlockMakesRoom) {
  PytorchAllocator a(400 * M, nullptr, split_below(100 * M));
  Told told;
  a.observe(&told);
  const Address small = get(a, 110 * M), large = get(a, 160 * M);
  get(a, 120 * M);
  a.free(small);
  a.free(large);
  told.take();
  get(a, 90 * M);
  EXPECT_EQ(told.take(), (Words{"refused 90", "free 110", "release_available 110", "alloc 90", "served 90"}));
  EXPECT_EQ(a.statistics().num_alloc_retries, 0);
  EXPECT_EQ(a.statistics().num_sync_all_streams, 0);
}

// None is large enough alone: from the largest down, until it is enough.
TEST(PytorchRetries, SeveralOversizeBlocksMakeRoom) {
  PytorchAllocator a(400 * M, nullptr, split_below(100 * M));
  Told told;
  a.observe(&told);
  std::vector<Address> blocks;
  for (const Bytes size : {100 * M, 110 * M, 130 * M}) blocks.push_back(get(a, size));
  for (const Address block : blocks) a.free(block);
  told.take();
  get(a, 200 * M);
  EXPECT_EQ(told.take(),
            (Words{"refused 200", "free 130", "free 110", "release_available 240", "alloc 200", "served 200"}));
  EXPECT_EQ(a.statistics().oversize_segments.current, 2);
  EXPECT_EQ(a.statistics().oversize_segments.allocated, 4);
  EXPECT_EQ(a.statistics().oversize_allocations.peak, 3);
}

// What was freed stays freed although it was not enough, and the next step is taken.
TEST(PytorchRetries, TooFewOversizeBlocksLeadToARetry) {
  PytorchAllocator a(300 * M, nullptr, split_below(100 * M));
  Told told;
  a.observe(&told);
  const Address oversize = get(a, 100 * M), plain = get(a, 60 * M);
  get(a, 100 * M);
  a.free(oversize);
  a.free(plain);
  told.take();
  get(a, 200 * M);
  EXPECT_EQ(told.take(), (Words{"refused 200", "free 100", "release_available 100", "free 60", "release_cached 60",
                                "alloc 200", "served 200"}));
  EXPECT_EQ(a.statistics().num_alloc_retries, 1);
}

TEST(PytorchRetries, OversizeBlocksOfOtherStreamsStay) {
  PytorchAllocator a(300 * M, nullptr, split_below(100 * M));
  Told told;
  a.observe(&told);
  a.free(get(a, 150 * M, 1));
  get(a, 100 * M, 0);
  told.take();
  get(a, 90 * M, 0);
  EXPECT_EQ(told.take(), (Words{"refused 90", "free 150", "release_cached 150", "alloc 90", "served 90"}));
}

TEST(PytorchRetries, TheFractionLimitsWhatIsReserved) {
  AllocatorSettings settings;
  settings.per_process_memory_fraction = 0.25;
  PytorchAllocator a(GiB(1), nullptr, settings);
  get(a, 200 * M);
  EXPECT_FALSE(a.allocate(60 * M, 0).has_value());
  get(a, 56 * M);
  a.set_device_total(GiB(2));
  get(a, 60 * M);
}

TEST(PytorchRetries, AFractionOfOneIsNoLimit) {
  AllocatorSettings settings;
  settings.per_process_memory_fraction = 1;
  settings.garbage_collection_threshold = 0.5;
  PytorchAllocator a(400 * M, nullptr, settings);
  a.set_device_total(100 * M);
  a.free(get(a, 150 * M));
  get(a, 200 * M);
  EXPECT_EQ(a.usage().reserved, 350 * M);
}

// The fraction is compared with the whole segment, although expandable segments map less.
TEST(PytorchRetries, TheFractionIsComparedWithTheSegment) {
  AllocatorSettings settings;
  settings.per_process_memory_fraction = 0.5;
  settings.expandable_segments = true;
  PytorchAllocator a(200 * M, nullptr, settings);
  get(a, 75 * M);
  EXPECT_EQ(a.usage().reserved, 80 * M);
  EXPECT_FALSE(a.allocate(21 * M, 0).has_value());  // 22 more than 100, though 16 pages of 1 would do
  get(a, 20 * M);
}

AllocatorSettings collecting() {
  AllocatorSettings settings;
  settings.per_process_memory_fraction = 15.0 / 16;
  settings.garbage_collection_threshold = 8.0 / 15;  // half of the device in all
  return settings;
}

// Of cached blocks those of at least average age go, also the young ones where that is not enough.
TEST(PytorchRetries, GarbageCollectionFreesTheOldest) {
  PytorchAllocator a(200 * M, nullptr, collecting());
  Told told;
  a.observe(&told);
  const Address oldest = get(a, 40 * M), newer = get(a, 30 * M);
  get(a, 50 * M);
  a.free(oldest);        // ages: 1 at the third search from here
  get(a, 10 * M + 512);  // takes part of the 40 MiB block
  a.free(newer);
  told.take();
  // Reserved 120 of 200, threshold 100: 20 to free. The split block of 40 is no candidate.
  get(a, 45 * M);
  EXPECT_EQ(told.take(), (Words{"free 30", "collect 30", "alloc 46"}));
  EXPECT_EQ(a.statistics().num_alloc_retries, 0);
}

TEST(PytorchRetries, GarbageCollectionGoesByAge) {
  PytorchAllocator a(200 * M, nullptr, collecting());
  Told told;
  a.observe(&told);
  const Address first = get(a, 40 * M), second = get(a, 42 * M), third = get(a, 44 * M);
  a.free(second);
  a.free(get(a, 512));                                 // small requests age nothing
  for (int i = 0; i < 3; ++i) a.free(get(a, 42 * M));  // the same block again: young
  a.free(first);
  for (int i = 0; i < 2; ++i) a.free(get(a, 42 * M));
  told.take();
  // 128 reserved, 28 to free; ages 3 and 1 at this search: 40 goes.
  get(a, 50 * M);
  EXPECT_EQ(told.take(), (Words{"free 40", "collect 40", "alloc 50"}));
  a.free(third);
  // 138 reserved, 38 to free: 42 is older than 44 and enough.
  get(a, 60 * M);
  EXPECT_EQ(told.take(), (Words{"free 42", "collect 42", "alloc 60"}));
}

TEST(PytorchRetries, BelowTheThresholdNothingIsCollected) {
  PytorchAllocator a(200 * M, nullptr, collecting());
  Told told;
  a.observe(&told);
  a.free(get(a, 60 * M));
  get(a, 40 * M, 1);
  EXPECT_EQ(a.usage().reserved, 100 * M);  // the threshold itself
  get(a, 20 * M, 1);
  EXPECT_EQ(told.take(), (Words{"alloc 60", "alloc 40", "alloc 20"}));
  get(a, 20 * M, 1);  // of all streams
  EXPECT_EQ(told.take(), (Words{"free 60", "collect 60", "alloc 20"}));
}

TEST(PytorchRetries, WhatNoDeviceHasIsRefusedInTheSameOrder) {
  PytorchAllocator a(200 * M);
  Told told;
  a.observe(&told);
  a.free(get(a, 20 * M));
  told.take();
  EXPECT_FALSE(a.allocate(std::numeric_limits<Bytes>::max(), 0).has_value());
  const Words words = told.take();
  ASSERT_EQ(words.size(), 5u);
  EXPECT_EQ(words[1], "free 20");
  EXPECT_EQ(words[2], "release_cached 20");
  EXPECT_EQ(a.statistics().num_ooms, 1);
}

TEST(PytorchRetries, RoundsByDivisions) {
  AllocatorSettings settings;
  settings.roundup_power2_divisions.fill(4);
  PytorchAllocator a(kUnlimited, nullptr, settings);
  get(a, 3 * M + 1);
  EXPECT_EQ(a.usage().allocated, 3 * M + M / 2);
  get(a, 2049);  // between 2048 and 4096 steps of 512
  EXPECT_EQ(a.usage().allocated, 3 * M + M / 2 + 2560);
  // The rounded size decides the pool: 1 MiB - 1 is small, and rounds to 1 MiB.
  get(a, M - 1);
  EXPECT_EQ(a.usage().reserved, 22 * M);
  get(a, 17 * M);
  EXPECT_EQ(a.usage().reserved, 42 * M);
}

TEST(PytorchRetries, LargeSegmentSizeIsWhatRequestsBelowTenMebibytesGet) {
  AllocatorSettings settings;
  settings.large_segment_size = 64 * M;
  PytorchAllocator a(kUnlimited, nullptr, settings);
  get(a, 2 * M);
  EXPECT_EQ(a.usage().reserved, 64 * M);
  get(a, 70 * M);
  EXPECT_EQ(a.usage().reserved, 134 * M);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
