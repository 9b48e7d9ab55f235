// Does the model of cudaMallocAsync's pool lose nothing but the unused parts of pages?
#include <gtest/gtest.h>

#include <limits>

#include "sim/memory/allocator.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

TEST(CudaAsyncAllocator, PagesAreTwoMebibytes) {
  const auto a = make_cuda_async_allocator(GiB(1));
  const auto first = a->allocate(1, 0);
  ASSERT_TRUE(first);
  EXPECT_EQ(a->usage().allocated, 512);
  EXPECT_EQ(a->usage().requested, 1);
  EXPECT_EQ(a->usage().reserved, MiB(2));
  ASSERT_TRUE(a->allocate(MiB(2) - 512, 0));
  EXPECT_EQ(a->usage().reserved, MiB(2));
  ASSERT_TRUE(a->allocate(1, 0));
  EXPECT_EQ(a->usage().reserved, MiB(4));
  EXPECT_EQ(a->events().device_mallocs, 2u);
}

TEST(CudaAsyncAllocator, TheEndOfThePoolIsExtended) {
  const auto a = make_cuda_async_allocator(GiB(1));
  const auto first = a->allocate(MiB(3), 0);
  const auto second = a->allocate(MiB(3), 0);  // begins in the page that the first one left half empty
  ASSERT_TRUE(first && second);
  EXPECT_EQ(*second, *first + MiB(3));
  EXPECT_EQ(a->usage().reserved, MiB(6));
}

// 40 MiB are free in two pieces: the caching allocator would need 40 MiB more (docs/allocator.md).
TEST(CudaAsyncAllocator, FreePagesAreMapped) {
  const auto a = make_cuda_async_allocator(MiB(100));
  const auto low = a->allocate(MiB(20), 0), middle = a->allocate(MiB(20), 0);
  const auto high = a->allocate(MiB(20), 0), top = a->allocate(MiB(40), 0);
  ASSERT_TRUE(low && middle && high && top);
  a->free(*low);
  a->free(*high);
  EXPECT_EQ(a->usage().reserved, MiB(100));
  ASSERT_TRUE(a->allocate(MiB(40), 0));
  EXPECT_EQ(a->usage().allocated, MiB(100));
  EXPECT_EQ(a->usage().reserved, MiB(100));
  EXPECT_FALSE(a->allocate(1, 0));
  EXPECT_EQ(a->usage().allocated, MiB(100));
}

TEST(CudaAsyncAllocator, PartsOfPagesAreNot) {
  const auto a = make_cuda_async_allocator(MiB(8));
  Address block[4];
  for (Address& address : block) address = *a->allocate(MiB(2), 0);
  Address half[2];
  for (const int i : {0, 2}) {
    a->free(block[i]);
    half[i / 2] = *a->allocate(MiB(1) + 512, 0);
  }
  EXPECT_FALSE(a->allocate(MiB(1), 0));  // almost 2 MiB are free, but in two pages
  a->free(half[0]);
  EXPECT_TRUE(a->allocate(MiB(2), 0));
}

TEST(CudaAsyncAllocator, BestFitAtTheLowestAddressForAnyStream) {
  const auto a = make_cuda_async_allocator(GiB(1));
  Address block[5];
  for (int i = 0; i < 5; ++i) block[i] = *a->allocate(i == 0 ? MiB(8) : MiB(4), 0);
  for (const int i : {0, 2, 4}) a->free(block[i]);
  EXPECT_EQ(a->allocate(MiB(3), 7), block[2]);  // not the 8 MiB at the lowest address
  EXPECT_EQ(a->usage().reserved, MiB(24));
}

TEST(CudaAsyncAllocator, ReservedNeverFalls) {
  const auto a = make_cuda_async_allocator(GiB(1));
  const auto block = a->allocate(MiB(500), 0);
  ASSERT_TRUE(block);
  a->free(*block);
  EXPECT_EQ(a->usage().allocated, 0);
  EXPECT_EQ(a->usage().reserved, MiB(500));
  EXPECT_EQ(a->events().device_frees, 0u);
  a->set_capacity(MiB(100));  // what is there can still be used
  EXPECT_EQ(a->allocate(MiB(500), 0), block);
}

TEST(CudaAsyncAllocator, NothingAndTooMuch) {
  const auto a = make_cuda_async_allocator(Bytes{1} << 60);
  const auto nothing = a->allocate(0, 0);
  ASSERT_TRUE(nothing);
  a->free(*nothing);
  EXPECT_EQ(a->usage().reserved, 0);
  EXPECT_FALSE(a->allocate(std::numeric_limits<Bytes>::max(), 0));
  // Growing requests move all pages each time: addresses run out before the sums do.
  for (int i = 0; i < 20; ++i) {
    const auto block = a->allocate((Bytes{1} << 58) + MiB(4) * i, 0);
    if (!block) break;
    a->allocate(512, 0);  // keeps the next one from growing in place
    a->free(*block);
    EXPECT_GE(a->usage().reserved, a->usage().allocated);
  }
  EXPECT_LE(a->usage().reserved, Bytes{1} << 60);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
