// The shortest turn of events with constraints between them: by hand, and against all paths of random ones.
#include "policies/cycle/shortest_turn.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/support/random_cycle.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

TEST(ShortestTurn, IsThatOfTheCycleThatTakesLongestPerTurn) {
  // 5 s in one turn; 14 s in two.
  const std::vector<TurnConstraint> all = {{0, 1, 0, 3}, {1, 0, 1, 2}, {1, 2, 1, 6}, {2, 0, 1, 5}};
  ShortestTurn turn(3, all);
  EXPECT_DOUBLE_EQ(turn.solve(0), 7);
  EXPECT_EQ(turn.binding().size(), 3u);
  EXPECT_DOUBLE_EQ(turn.solve(9), 9);
  EXPECT_TRUE(turn.binding().empty());
}

TEST(ShortestTurn, IsInfiniteWhereAnEventComesBehindItself) {
  const std::vector<TurnConstraint> all = {{0, 1, 1, 3}, {1, 0, -1, -2}};
  ShortestTurn turn(2, all);
  EXPECT_EQ(turn.solve(1), std::numeric_limits<double>::infinity());
  EXPECT_EQ(turn.binding().size(), 2u);
}

// Is there a way back to an event that makes it later than it is? Floyd and Warshall.
bool can_repeat(std::size_t events, const std::vector<TurnConstraint>& all, double turn) {
  constexpr double kNoWay = -1e18;
  std::vector<std::vector<double>> longest(events, std::vector<double>(events, kNoWay));
  for (const TurnConstraint& one : all)
    longest[one.from][one.to] = std::max(longest[one.from][one.to], one.seconds - one.turns * turn);
  for (std::size_t via = 0; via < events; ++via)
    for (std::size_t from = 0; from < events; ++from)
      for (std::size_t to = 0; to < events; ++to)
        longest[from][to] = std::max(longest[from][to], longest[from][via] + longest[via][to]);
  for (std::size_t event = 0; event < events; ++event)
    if (longest[event][event] > 0) return false;
  return true;
}

TEST(ShortestTurn, OfRandomConstraintsIsTheLeastThatCanRepeat) {
  int binding = 0;
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE(seed);
    RandomNumbers r(seed);
    const std::size_t events = r.between(1, 8);
    std::vector<TurnConstraint> all;
    for (std::size_t i = 0, many = r.between(1, 20); i < many; ++i) {
      const auto from = static_cast<std::uint32_t>(r.below(events)), to = static_cast<std::uint32_t>(r.below(events));
      const bool ahead = from < to;
      all.push_back({from, to,
                     ahead ? static_cast<std::int32_t>(r.below(2)) : static_cast<std::int32_t>(r.between(1, 2)),
                     r.part() * 3 - (ahead ? 1 : 0)});
    }
    ShortestTurn shortest(events, all);
    const double turn = shortest.solve(0.5);
    EXPECT_TRUE(can_repeat(events, all, turn * (1 + 1e-9)));
    for (const TurnConstraint& one : all)
      EXPECT_GE(shortest.times()[one.to] + one.turns * turn, shortest.times()[one.from] + one.seconds - 1e-9);
    if (turn == 0.5) continue;
    ++binding;
    EXPECT_FALSE(can_repeat(events, all, turn * (1 - 1e-6)));
    EXPECT_FALSE(shortest.binding().empty());
  }
  EXPECT_GE(binding, 500);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
