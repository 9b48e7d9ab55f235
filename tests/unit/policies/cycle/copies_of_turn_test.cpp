// Copies that have to pass between events of a turn: how long it is at least, and in which order.
#include "policies/cycle/copies_of_turn.h"

#include <gtest/gtest.h>

namespace memwall {
namespace MEMWALL_TEST_FILE {

// Three events, at 0, 4 and 5 of a turn of 10 s. A copy of 8 s may run all the turn, one of a second between the last
// two events.
TurnOfCopies long_and_short() {
  static constexpr double kStarts[] = {0, 4, 5, 10};
  TurnOfCopies turn;
  turn.starts = kStarts;
  turn.copies[0] = {{0, 3, 8}, {1, 2, 1}};
  return turn;
}

TEST(CopiesOfTurn, MayInterruptEachOtherUntilTheirOrderIsDecided) {
  const TurnOfCopies turn = long_and_short();
  std::uint64_t work = 0;
  EXPECT_DOUBLE_EQ(turn.least({}, 10, work), 10);
  // First the short one: the long one runs from 5 to 13. First the long one: the short one until 9, then 5 s more.
  EXPECT_DOUBLE_EQ(turn.least({{0, 0, 1, 1}}, 10, work), 13);
  EXPECT_DOUBLE_EQ(turn.least({{0, 0, 1, 0}}, 10, work), 14);
  EXPECT_GT(work, 0u);
}

TEST(CopiesOfTurn, AnOrderThatIsNotTheBestNamesWhatToDecide) {
  const TurnOfCopies turn = long_and_short();
  std::uint64_t work = 0;
  const OrderedCopies any = turn.ordered({}, 10, work);
  EXPECT_GE(any.seconds, 13);
  ASSERT_EQ(any.alternatives.size(), 2u);
  EXPECT_NE(any.alternatives[0].turns, any.alternatives[1].turns);
  const OrderedCopies best = turn.ordered({{0, 0, 1, 1}}, 13, work);
  EXPECT_DOUBLE_EQ(best.seconds, 13);
  EXPECT_TRUE(best.alternatives.empty());
  ASSERT_EQ(best.order[0].size(), 2u);
  EXPECT_TRUE(best.order[1].empty());
}

// Both have to pass between events 0 and 1, whichever comes first; the other direction does not matter to them.
TEST(CopiesOfTurn, AddUpInAWindowOfTheirDirection) {
  TurnOfCopies turn;
  const std::vector<double> starts = {0, 4, 10};
  turn.starts = starts;
  turn.copies[0] = {{0, 1, 3}, {0, 1, 2}};
  turn.copies[1] = {{0, 1, 4.5}};
  std::uint64_t work = 0;
  EXPECT_DOUBLE_EQ(turn.least({}, 10, work), 11);
  turn.copies[1][0].seconds = 6;
  EXPECT_DOUBLE_EQ(turn.least({}, 10, work), 12);
  EXPECT_DOUBLE_EQ(turn.ordered({}, 12, work).seconds, 12);
}

// One window from event 0 to 2, one from event 1 to the next turn's event 0, which overlaps it, and one from event 2 to
// the next turn's event 1. None fits beside another: of all three, two turns have room for one and a half.
TEST(CopiesOfTurn, OverlappingWindowsAreNotAdded) {
  TurnOfCopies turn;
  const std::vector<double> starts = {0, 1, 2, 3};
  turn.starts = starts;
  turn.windows = {{0, 2, 4}};
  std::uint64_t work = 0;
  EXPECT_DOUBLE_EQ(turn.least({}, 3, work), 5);
  turn.windows.push_back({1, 3, 4});
  EXPECT_DOUBLE_EQ(turn.least({}, 3, work), 5);
  turn.windows.push_back({2, 4, 4});
  EXPECT_DOUBLE_EQ(turn.least({}, 3, work), 6);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
