// Do expandable segments grow, shrink and serve as PyTorch's do?
#include <gtest/gtest.h>

#include "tests/support/allocator_view.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

using Use = BlockState::Use;

AllocatorSettings expandable() {
  AllocatorSettings settings;
  settings.expandable_segments = true;
  return settings;
}

// (offset, size, use) of the blocks of a segment.
std::vector<std::tuple<Bytes, Bytes, Use>> layout(const SegmentState& segment) {
  std::vector<std::tuple<Bytes, Bytes, Use>> blocks;
  for (const BlockState& block : segment.blocks)
    blocks.emplace_back(static_cast<Bytes>(block.address - segment.address), block.size, block.use);
  return blocks;
}

// A simulation goes on after a refusal: also with a request for which no segment has the address space.
TEST(PytorchExpandable, WithoutLimitsEveryRequestIsServed) {
  PytorchAllocator a(100 * M, nullptr, expandable());
  EXPECT_FALSE(a.allocate(300 * M, 0));
  a.lift_limits();
  EXPECT_TRUE(a.allocate(300 * M, 0));
  EXPECT_TRUE(a.allocate(500 * M, 0));
  EXPECT_EQ(a.usage().allocated, 800 * M);
}

TEST(PytorchExpandable, WithoutLimitsNoShareOfTheDeviceHoldsEither) {
  for (const bool expands : {false, true}) {
    AllocatorSettings settings;
    settings.expandable_segments = expands;
    settings.per_process_memory_fraction = 0.2;
    PytorchAllocator a(100 * M, nullptr, settings);
    EXPECT_FALSE(a.allocate(30 * M, 0));
    a.lift_limits();
    EXPECT_TRUE(a.allocate(30 * M, 0));
    EXPECT_TRUE(a.allocate(300 * M, 0));
  }
}

// Golden vector 4: what fragmentation refuses with segments of fixed size fits here.
TEST(PytorchExpandable, UnmapsHolesAndMapsThemAtTheEnd) {
  PytorchAllocator a(120 * M, nullptr, expandable());
  Told told;
  a.observe(&told);
  const Address first = get(a, 60 * M);
  get(a, 30 * M);
  EXPECT_EQ(a.usage().reserved, 100 * M);
  a.free(first);
  const Address third = get(a, 20 * M);
  EXPECT_EQ(third, first);
  get(a, 20 * M);
  a.free(third);
  told.take();
  const Address large = get(a, 45 * M);
  EXPECT_EQ(large, first + static_cast<Address>(90 * M));
  EXPECT_EQ(a.usage().reserved, 100 * M);
  EXPECT_EQ(a.usage().allocated, 95 * M);
  EXPECT_EQ(free_sizes(a), std::vector<Bytes>{5 * M});
  EXPECT_EQ(a.events().retries, 1u);
  EXPECT_EQ(told.take(), (std::vector<std::string>{"refused 40", "unmap 20", "unmap 20", "release_cached 40", "map 40",
                                                   "served 50"}));
}

// Golden vector 5.
TEST(PytorchExpandable, OnePageOfEachPool) {
  PytorchAllocator a(kUnlimited, nullptr, expandable());
  get(a, 100);
  get(a, M + 1);
  EXPECT_EQ(a.usage().reserved, 22 * M);
  a.release_cached();
  EXPECT_EQ(a.usage().reserved, 22 * M);
}

// Golden vector 6.
TEST(PytorchExpandable, FillsTheLowestHoleFirst) {
  PytorchAllocator a(kUnlimited, nullptr, expandable());
  const Address low = get(a, 50 * M), middle = get(a, 50 * M);
  get(a, 50 * M);
  EXPECT_EQ(a.usage().reserved, 160 * M);
  a.free(middle);
  a.release_cached();
  EXPECT_EQ(a.usage().reserved, 120 * M);
  EXPECT_EQ(free_sizes(a), (std::vector<Bytes>{10 * M, 10 * M}));
  EXPECT_EQ(get(a, 30 * M), low + static_cast<Address>(50 * M));
  EXPECT_EQ(a.usage().reserved, 140 * M);
  EXPECT_EQ(free_sizes(a), std::vector<Bytes>{10 * M});
}

TEST(PytorchExpandable, ReservesNineEighthsOfTheDeviceInWholePages) {
  PytorchAllocator a(GiB(7), nullptr, expandable());
  a.set_device_total(GiB(8));
  get(a, 2 * M);
  get(a, 512);
  const auto segments = a.segments();
  ASSERT_EQ(segments.size(), 2u);
  EXPECT_EQ(segments[0].size, 9220 * M);  // 9 GiB, up to 20 MiB
  EXPECT_EQ(segments[1].size, GiB(9));
  EXPECT_TRUE(segments[1].small_pool);
  EXPECT_EQ(layout(segments[0]),
            (std::vector<std::tuple<Bytes, Bytes, Use>>{
                {0, 2 * M, Use::in_use}, {2 * M, 18 * M, Use::free}, {20 * M, 9200 * M, Use::unmapped}}));
}

// Of two free blocks the one with unmapped memory behind it counts as larger.
TEST(PytorchExpandable, BestFitCountsTheUnmappedTail) {
  PytorchAllocator a(kUnlimited, nullptr, expandable());
  const Address hole = get(a, 12 * M);
  get(a, 2 * M);  // [12, 14)
  EXPECT_EQ(a.usage().reserved, 20 * M);
  a.free(hole);  // free: [0, 12) and [14, 20) with the tail
  EXPECT_EQ(get(a, 5 * M), hole);
  EXPECT_EQ(get(a, 7 * M), hole + static_cast<Address>(5 * M));
}

TEST(PytorchExpandable, SplitsFromFiveHundredTwelveBytesOn) {
  PytorchAllocator a(kUnlimited, nullptr, expandable());
  a.free(get(a, 20 * M));
  get(a, 20 * M - 512);
  EXPECT_EQ(free_sizes(a), std::vector<Bytes>{512});
}

TEST(PytorchExpandable, EachStreamHasItsOwnSegment) {
  PytorchAllocator a(kUnlimited, nullptr, expandable());
  get(a, 5 * M, 0);
  get(a, 5 * M, 1);
  get(a, 5 * M, 0);
  const auto segments = a.segments();
  ASSERT_EQ(segments.size(), 2u);
  EXPECT_EQ(a.usage().reserved, 40 * M);
  EXPECT_EQ(segments[0].blocks.size(), 4u);
}

TEST(PytorchExpandable, AnEmptySegmentIsGivenUp) {
  PytorchAllocator a(kUnlimited, nullptr, expandable());
  const Address first = get(a, 30 * M);
  a.free(first);
  a.release_cached();
  EXPECT_EQ(a.usage().reserved, 0);
  EXPECT_TRUE(a.segments().empty());
  EXPECT_NE(get(a, 30 * M), first);
}

// Pages that a refused mapping had got already stay; the refused call itself maps nothing.
TEST(PytorchExpandable, ARefusedMappingMapsNothing) {
  PytorchAllocator a(70 * M, nullptr, expandable());
  Told told;
  a.observe(&told);
  get(a, 25 * M);
  told.take();
  EXPECT_FALSE(a.allocate(60 * M, 0).has_value());
  EXPECT_EQ(a.usage().reserved, 40 * M);
  EXPECT_EQ(told.take(), (std::vector<std::string>{"refused 60", "release_cached 0", "refused 60", "oom 60"}));
  EXPECT_EQ(get(a, 35 * M), a.segments()[0].address + static_cast<Address>(25 * M));
  EXPECT_EQ(a.usage().reserved, 60 * M);
}

TEST(PytorchExpandable, ARequestBeyondTheReservationIsRefused) {
  PytorchAllocator a(GiB(8), nullptr, expandable());
  a.set_device_total(GiB(1));
  EXPECT_FALSE(a.allocate(GiB(2), 0).has_value());
  EXPECT_EQ(a.usage().reserved, 0);
}

TEST(PytorchExpandable, PagesAreOfTheLargeSegmentSize) {
  AllocatorSettings settings = expandable();
  settings.large_segment_size = 12 * M;
  PytorchAllocator a(kUnlimited, nullptr, settings);
  get(a, 13 * M);
  EXPECT_EQ(a.usage().reserved, 24 * M);
}

// Gives ascending addresses from `next` on and notes what is given up.
struct Recorded final : SegmentSource {
  Address next = 0x7000000000;
  std::vector<Bytes> reserved, given_up;
  std::optional<Address> obtain(Bytes) override { return std::nullopt; }
  void give_back(Address, Bytes) override { ADD_FAILURE(); }
  std::optional<Address> reserve(Bytes bytes) override {
    reserved.push_back(bytes);
    return next;
  }
  void unreserve(Address address, Bytes bytes) override {
    EXPECT_EQ(address, next);
    given_up.push_back(bytes);
  }
};

TEST(PytorchExpandable, TheSourceSaysWhereSegmentsAre) {
  Recorded source;
  PytorchAllocator a(GiB(80), &source, expandable());
  const Address address = get(a, 30 * M);
  EXPECT_EQ(address, source.next);
  EXPECT_EQ(source.reserved, std::vector<Bytes>{GiB(90)});
  get(a, 50 * M);
  EXPECT_EQ(source.reserved.size(), 1u);  // mapping asks nothing
  a.free(address);
  a.free(address + static_cast<Address>(30 * M));
  a.release_cached();
  EXPECT_EQ(source.given_up, std::vector<Bytes>{GiB(90)});
}

// Real memory that cannot map pages.
TEST(PytorchExpandable, WithoutReservationsRequestsFail) {
  struct Plain final : SegmentSource {
    std::optional<Address> obtain(Bytes) override { return 4096; }
    void give_back(Address, Bytes) override {}
  } source;
  PytorchAllocator a(GiB(1), &source, expandable());
  EXPECT_FALSE(a.allocate(512, 0).has_value());
  EXPECT_EQ(a.statistics().num_ooms, 1);
}

TEST(PytorchExpandable, RestoresAndGoesOn) {
  PytorchAllocator a(GiB(1), nullptr, expandable());
  const Address low = get(a, 50 * M), middle = get(a, 50 * M);
  get(a, 50 * M);
  get(a, 600);
  a.free(middle);
  a.release_cached();
  PytorchAllocator b(GiB(1), nullptr, expandable());
  b.restore(a.segments());
  EXPECT_EQ(b.segments(), a.segments());
  EXPECT_EQ(b.usage().reserved, a.usage().reserved);
  EXPECT_EQ(b.usage().allocated, a.usage().allocated);
  EXPECT_EQ(get(b, 30 * M), low + static_cast<Address>(50 * M));
  b.free(low);
  b.release_cached();
  EXPECT_EQ(b.usage().reserved, 102 * M);  // 2 small; [40, 80) and [100, 160)
}

// The setting may be off later: what is expandable then serves nobody, and shrinks on release.
TEST(PytorchExpandable, TurnedOffItServesNobody) {
  PytorchAllocator a(GiB(1), nullptr, expandable());
  const Address held = get(a, 2 * M);
  a.free(get(a, 60 * M));
  PytorchAllocator b(GiB(1));
  b.restore(a.segments());
  const Address outside = get(b, 30 * M);
  EXPECT_GT(outside, held + static_cast<Address>(GiB(1)));
  EXPECT_EQ(b.statistics().segment[0].current, 1);
  b.free(outside);
  EXPECT_EQ(get(b, 25 * M), outside);  // rather than the expandable block of 78 MiB, or none
  b.release_cached();
  EXPECT_EQ(b.usage().reserved, 20 * M + 30 * M);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
