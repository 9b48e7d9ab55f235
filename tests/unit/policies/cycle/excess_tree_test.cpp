// Bytes by slot and where they are over a limit, while ranges change.
#include "policies/cycle/excess_tree.h"

#include <gtest/gtest.h>

#include <random>

#include "policies/cycle/slot_bytes.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

TEST(ExcessTree, KnowsWhereTheLimitIsPassed) {
  const std::vector<Duration> times = {from_seconds(1), from_seconds(2), from_seconds(3), from_seconds(4)};
  ExcessTree tree({5, 11, 15, 6}, times, 10);
  EXPECT_TRUE(tree.is_over());
  EXPECT_EQ(tree.time_over(0, 4), from_seconds(5));
  EXPECT_EQ(tree.next_over(0), 1);
  EXPECT_EQ(tree.next_over(3), 5) << "slot 1 of the next turn";
  EXPECT_EQ(tree.highest(3, 5), 6);
  EXPECT_EQ(tree.highest(3, 6), 11) << "around the end of the turn";
  tree.add(1, 3, -2);
  EXPECT_FALSE(tree.is_over(1));
  EXPECT_EQ(tree.at(2), 13);
  EXPECT_EQ(tree.time_over(0, 4), from_seconds(3));
  tree.add(2, 5, -4);
  EXPECT_FALSE(tree.is_over());
  EXPECT_EQ(tree.next_over(2), 6) << "a turn behind: nowhere";
  EXPECT_EQ(tree.at(0), 1);
  tree.add(2, 3, 2);
  EXPECT_TRUE(tree.is_over(2));
}

// Beside the same done slot by slot.
TEST(ExcessTree, AgreesWithAPlainList) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 200; ++trial) {
    const std::size_t slots = 1 + random() % (trial % 4 == 0 ? 100 : 20);
    std::vector<Bytes> live(slots);
    std::vector<Duration> times(slots);
    for (Bytes& bytes : live) bytes = 100 + static_cast<Bytes>(random() % 30);
    for (Duration& time : times) time = nanoseconds(1 + random() % 9);
    constexpr Bytes kLimit = 115;
    ExcessTree tree(live, times, kLimit);
    SlotBytes bytes_alone(live);
    for (int change = 0; change < 20; ++change) {
      const auto first = static_cast<std::int64_t>(random() % slots);
      const auto end = first + static_cast<std::int64_t>(random() % (slots + 1));
      const Bytes bytes = static_cast<Bytes>(random() % 11) - 5;
      tree.add(first, end, bytes);
      bytes_alone.add(first, end, bytes);
      for (std::int64_t slot = first; slot < end; ++slot) live[static_cast<std::size_t>(slot) % slots] += bytes;
      Duration over{};
      for (std::size_t slot = 0; slot < slots; ++slot) {
        ASSERT_EQ(tree.at(static_cast<std::int64_t>(slot)), live[slot]);
        ASSERT_EQ(bytes_alone.at(static_cast<std::int64_t>(slot)), live[slot]);
        if (live[slot] > kLimit) over += times[slot];
        ASSERT_EQ(tree.is_over(static_cast<std::int64_t>(slot)), live[slot] > kLimit);
      }
      ASSERT_EQ(tree.time_over(0, static_cast<std::int64_t>(slots)), over);
      ASSERT_EQ(tree.is_over(), over > Duration{});
      const auto from = static_cast<std::int64_t>(random() % slots) - static_cast<std::int64_t>(random() % slots);
      const auto to = from + static_cast<std::int64_t>(random() % (slots + 1));
      const auto turn = static_cast<std::int64_t>(slots);
      const auto place = [&](std::int64_t slot) { return static_cast<std::size_t>((slot % turn + turn) % turn); };
      Bytes highest = 0;
      over = {};
      for (std::int64_t slot = from; slot < to; ++slot) {
        highest = std::max(highest, live[place(slot)]);
        if (live[place(slot)] > kLimit) over += times[place(slot)];
      }
      ASSERT_EQ(tree.highest(from, to), highest);
      ASSERT_EQ(bytes_alone.highest(from, to), highest);
      ASSERT_EQ(tree.time_over(from, to), over);
    }
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
