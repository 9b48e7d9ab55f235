// Does the caching allocator reserve, place and give back as PyTorch's does?
#include "sim/memory/pytorch_allocator.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/support/allocator_view.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

TEST(PytorchAllocator, SmallRequestsShareTwoMebibytes) {
  PytorchAllocator a(kUnlimited);
  get(a, 1);
  EXPECT_EQ(a.usage().allocated, 512);
  EXPECT_EQ(a.usage().requested, 1);
  EXPECT_EQ(a.usage().reserved, 2 * M);
  EXPECT_EQ(free_sizes(a), std::vector<Bytes>{2'096'640});
  get(a, M);
  EXPECT_EQ(a.usage().allocated, 1'049'088);
  EXPECT_EQ(a.usage().reserved, 2 * M);
  EXPECT_EQ(free_sizes(a), std::vector<Bytes>{1'048'064});
}

// One sequence through every segment size; the numbers follow from the rules by hand.
TEST(PytorchAllocator, SegmentSizesOfLargeRequests) {
  PytorchAllocator a(kUnlimited);
  std::vector<Address> live{get(a, 1), get(a, M), get(a, M + 1)};
  EXPECT_EQ(a.usage().allocated, 2'098'176);
  EXPECT_EQ(a.usage().reserved, 22 * M);
  EXPECT_EQ(free_sizes(a), (std::vector<Bytes>{1'048'064, 19'922'432}));
  live.push_back(get(a, 9 * M));
  EXPECT_EQ(a.usage().reserved, 22 * M);
  EXPECT_EQ(free_sizes(a), (std::vector<Bytes>{1'048'064, 10'485'248}));
  live.push_back(get(a, 10 * M));
  EXPECT_EQ(a.usage().reserved, 32 * M);
  live.push_back(get(a, 10 * M + 1));
  EXPECT_EQ(a.usage().reserved, 46'137'344);
  EXPECT_EQ(a.usage().reserved - a.usage().allocated, 13'629'952);
  EXPECT_EQ(free_sizes(a), (std::vector<Bytes>{1'048'064, 2'096'640, 10'485'248}));
  for (const Address address : live) a.free(address);
  EXPECT_EQ(a.usage().allocated, 0);
  EXPECT_EQ(a.usage().requested, 0);
  EXPECT_EQ(free_sizes(a), (std::vector<Bytes>{2 * M, 10 * M, 12 * M, 20 * M}));
  get(a, 15 * M);
  EXPECT_EQ(a.usage().reserved, 44 * M);
  EXPECT_EQ(free_sizes(a), (std::vector<Bytes>{2 * M, 5 * M, 10 * M, 12 * M}));
}

TEST(PytorchAllocator, LargePoolKeepsARemainderOfOneMebibyte) {
  PytorchAllocator a(kUnlimited);
  a.free(get(a, 40 * M));
  const Address whole = get(a, 39 * M);
  EXPECT_EQ(a.usage().allocated, 40 * M);
  EXPECT_EQ(a.usage().requested, 39 * M);
  EXPECT_TRUE(free_sizes(a).empty());
  a.free(whole);
  get(a, 39 * M - 512);
  EXPECT_EQ(a.usage().allocated, 39 * M - 512);
  EXPECT_EQ(free_sizes(a), std::vector<Bytes>{M + 512});
}

TEST(PytorchAllocator, FragmentationRefusesWhatWouldFit) {
  PytorchAllocator a(100 * M);
  const Address first = get(a, 60 * M);
  get(a, 30 * M);
  a.free(first);
  const Address third = get(a, 20 * M);
  get(a, 20 * M);
  a.free(third);
  EXPECT_EQ(a.usage().reserved, 90 * M);
  EXPECT_EQ(free_sizes(a), (std::vector<Bytes>{20 * M, 20 * M}));
  EXPECT_FALSE(a.allocate(45 * M, 0).has_value());
  EXPECT_EQ(a.events().retries, 1u);
  EXPECT_EQ(a.events().device_frees, 0u);
  EXPECT_EQ(a.usage().reserved - a.usage().allocated, 40 * M);
  // The failure changed nothing, and with more room the run goes on.
  a.set_capacity(200 * M);
  get(a, 45 * M);
  EXPECT_EQ(a.usage().reserved, 136 * M);
  EXPECT_EQ(a.events().retries, 1u);
}

TEST(PytorchAllocator, FailureReleasesWholeSegmentsAndTriesAgain) {
  PytorchAllocator a(100 * M);
  const Address large = get(a, 50 * M);
  const Address other = get(a, 40 * M);
  const Address small = get(a, 512);
  a.free(large);
  a.free(small);
  EXPECT_EQ(a.usage().reserved, 92 * M);
  get(a, 60 * M);
  EXPECT_EQ(a.events().retries, 1u);
  EXPECT_EQ(a.events().device_frees, 2u);
  EXPECT_EQ(a.events().device_mallocs, 4u);
  EXPECT_EQ(a.usage().reserved, 100 * M);
  a.free(other);
  a.release_cached();
  EXPECT_EQ(a.usage().reserved, 60 * M);
}

TEST(PytorchAllocator, BestFitThenLowestAddress) {
  PytorchAllocator a(kUnlimited);
  std::vector<Address> block;
  for (int i = 0; i < 8; ++i) block.push_back(get(a, i == 3 ? 2048 : 1024));
  for (const int i : {5, 1, 3}) a.free(block[i]);
  EXPECT_EQ(get(a, 1000), block[1]);  // of two equal ones
  EXPECT_EQ(get(a, 1000), block[5]);  // rather than the larger one below it
  EXPECT_EQ(get(a, 1000), block[3]);
}

TEST(PytorchAllocator, StreamsDoNotShareFreeBlocks) {
  PytorchAllocator a(kUnlimited);
  const Address on_zero = get(a, 12 * M, 0);
  a.free(on_zero);
  EXPECT_NE(get(a, 12 * M, 3), on_zero);
  EXPECT_EQ(a.usage().reserved, 24 * M);
  EXPECT_EQ(get(a, 12 * M, 0), on_zero);
}

TEST(PytorchAllocator, NeighbouringSegmentsDoNotJoin) {
  PytorchAllocator a(kUnlimited);
  const Address low = get(a, 12 * M), high = get(a, 12 * M);
  EXPECT_EQ(high, low + static_cast<Address>(12 * M));
  a.free(low);
  a.free(high);
  EXPECT_EQ(free_sizes(a), (std::vector<Bytes>{12 * M, 12 * M}));
}

TEST(PytorchAllocator, NothingAndTooMuch) {
  PytorchAllocator a(kUnlimited);
  a.free(get(a, 0));
  EXPECT_EQ(a.usage().reserved, 0);
  EXPECT_FALSE(a.allocate(std::numeric_limits<Bytes>::max(), 0).has_value());
  EXPECT_FALSE(a.allocate(kUnlimited + 1, 0).has_value());
  EXPECT_EQ(a.usage().reserved, 0);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
