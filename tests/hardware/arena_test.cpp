// Does the device memory of the host back end hand out what it has, once, and take it back?
#include "validate/replay/arena.h"

#include <gtest/gtest.h>

#include <cstring>
#include <new>

#include "sim/memory/pytorch_allocator.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

TEST(FirstFit, TakesTheLowestPieceThatIsLargeEnough) {
  FirstFit room(4096, 512);
  EXPECT_EQ(room.take(1000), 0);  // occupies 1024
  EXPECT_EQ(room.take(512), 1024);
  EXPECT_EQ(room.take(1), 1536);
  room.give_back(0, 1000);
  EXPECT_EQ(room.take(1024), 0);
  EXPECT_EQ(room.take(600), 2048) << "the gaps before it are taken";
  EXPECT_EQ(room.free_bytes(), 4096 - 1024 - 512 - 512 - 1024);
}

TEST(FirstFit, NeighboursJoinInWhateverOrderTheyComeBack) {
  for (int order = 0; order < 6; ++order) {
    FirstFit room(3 * 512, 512);
    const Bytes offsets[] = {*room.take(512), *room.take(512), *room.take(512)};
    EXPECT_FALSE(room.take(1).has_value());
    const int first = order % 3, second = (first + 1 + order / 3) % 3, third = 3 - first - second;
    for (const int i : {first, second, third}) room.give_back(offsets[i], 512);
    EXPECT_EQ(room.largest_free(), 3 * 512) << "order " << order;
  }
}

TEST(FirstFit, RefusesWhatDoesNotFitInOnePiece) {
  FirstFit room(4 * 512, 512);
  const auto a = room.take(512);
  const auto b = room.take(512);
  const auto c = room.take(512);
  ASSERT_TRUE(a && b && c);
  room.give_back(*b, 512);
  EXPECT_EQ(room.free_bytes(), 1024);
  EXPECT_FALSE(room.take(1024).has_value()) << "1024 bytes are free, but not beside each other";
  EXPECT_FALSE(room.take(std::numeric_limits<Bytes>::max()).has_value());
}

TEST(Arena, AddressesAreMemoryOfOnesOwn) {
  Arena arena(MiB(1));
  const auto a = arena.obtain(100'000), b = arena.obtain(100'000);
  ASSERT_TRUE(a && b);
  EXPECT_EQ(*a % 512, 0u);
  EXPECT_EQ(*b % 512, 0u);
  std::memset(reinterpret_cast<void*>(*a), 1, 100'000);
  std::memset(reinterpret_cast<void*>(*b), 2, 100'000);
  EXPECT_EQ(reinterpret_cast<const char*>(*a)[99'999], 1);
  arena.give_back(*a, 100'000);
  arena.give_back(*b, 100'000);
  EXPECT_EQ(arena.free_bytes(), MiB(1));
}

TEST(Arena, HasNoMoreThanItsCapacity) {
  Arena arena(MiB(1));
  EXPECT_FALSE(arena.obtain(MiB(1) + 1).has_value());
  EXPECT_TRUE(arena.obtain(MiB(1)).has_value());
  EXPECT_FALSE(arena.obtain(1).has_value());
}

TEST(Arena, MoreThanTheComputerHasIsRefused) { EXPECT_THROW(Arena(Bytes{1} << 46), std::bad_alloc); }

TEST(Arena, FeedsTheCachingAllocator) {
  Arena arena(MiB(64));
  PytorchAllocator allocator(MiB(64), &arena);
  const auto address = allocator.allocate(MiB(30), 0);
  ASSERT_TRUE(address.has_value());
  std::memset(reinterpret_cast<void*>(*address), 3, static_cast<std::size_t>(MiB(30)));
  EXPECT_EQ(arena.free_bytes(), MiB(34));
  allocator.free(*address);
  EXPECT_FALSE(arena.free_bytes() == MiB(64)) << "cached";
  allocator.release_cached();
  EXPECT_EQ(arena.free_bytes(), MiB(64));
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
