// The shortest turn of plans that move whole storages, by hand.
#include "policies/cycle/whole_moves.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "policies/cycle/moves_bound.h"
#include "tests/support/small_cycle.h"
#include "tests/support/turn_of_plan.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

// Four slots of a second. Three storages rest in slots 1 and 2 beside what is used there: 7 of 23 GB are over the
// budget.
CycleProgram three_beside() {
  CycleProgram program = slots_of_seconds({1, 1, 1, 1});
  for (const Bytes gigabytes : {6, 5, 4})
    program.storages.push_back(within_turn(gigabytes * kGB, {writes_in(0), reads_in(3)}));
  program.storages.push_back(within_turn(8 * kGB, {writes_in(1), reads_in(2)}));
  return program;
}
constexpr Bytes kBudget = 16 * kGB;

void expect_carried_out(const StepCycle& cycle, const CycleLinks& links, const WholeMovesPlan& best) {
  EXPECT_TRUE(is_sound(cycle, best.plan));
  const ReplayedTurns replayed = replay_turns(turn_of(cycle, best.plan), links);
  EXPECT_EQ(replayed.faults, std::vector<std::string>{});
  EXPECT_LE(replayed.highest, kBudget);
  EXPECT_NEAR(replayed.seconds, best.seconds, 1e-9);
}

TEST(WholeMoves, AStorageIsAwayAsAWhole) {
  const StepCycle cycle(three_beside());
  const CycleLinks links = one_path(9e9, 9e9);
  // 7 GB of 9 GB/s each way where storages had pieces; the least of them that are enough have 9.
  EXPECT_DOUBLE_EQ(moves_bound(cycle, links, kBudget).seconds, 4 + 2 * 7.0 / 9);
  EXPECT_NEAR(whole_moves_bound_seconds(cycle, links, kBudget), 6, 1e-8);
  const std::optional<WholeMoves> found = find_whole_moves(cycle, links, kBudget);
  ASSERT_TRUE(found && found->is_complete && found->best);
  EXPECT_NEAR(found->bound_seconds, 6, 1e-8);
  EXPECT_NEAR(found->best->seconds, 6, 1e-9);
  EXPECT_EQ(found->best->plan.moves.size(), 2u);
  expect_carried_out(cycle, links, *found->best);
}

// What ends with slot 1 makes room for the first storage, while the second still leaves: a plan that fetches before it
// drops is 10 s faster than the best of those that drop first, as replay_cycle() has them.
TEST(WholeMoves, TheBoundHoldsForPlansThatFetchBeforeTheyDrop) {
  CycleProgram program = slots_of_seconds({1, 1, 1, 1});
  program.storages = {within_turn(10 * kGB, {writes_in(0), reads_in(2)}),
                      within_turn(10 * kGB, {writes_in(1), reads_in(3)}), within_turn(10 * kGB, {writes_in(1)}),
                      within_turn(10 * kGB, {writes_in(2)})};
  const StepCycle cycle(program);
  const CycleLinks links = one_path(1e9, 1e9);
  const std::optional<WholeMoves> found = find_whole_moves(cycle, links, 20 * kGB);
  ASSERT_TRUE(found && found->is_complete && found->best);
  EXPECT_NEAR(found->best->seconds, 44, 1e-6);
  Turn turn = turn_of(cycle, found->best->plan);
  for (std::size_t i = 1; i < turn.events.size(); ++i)
    for (std::size_t j = i;
         j > 0 && turn.events[j].kind == TurnEvent::Kind::fetch && turn.events[j - 1].kind == TurnEvent::Kind::drop;
         --j)
      std::swap(turn.events[j], turn.events[j - 1]);
  const ReplayedTurns replayed = replay_turns(turn, links);
  ASSERT_EQ(replayed.faults, std::vector<std::string>{});
  ASSERT_LE(replayed.highest, 20 * kGB);
  EXPECT_NEAR(replayed.seconds, 34, 1e-6);
  EXPECT_LE(whole_moves_bound_seconds(cycle, links, 20 * kGB), replayed.seconds * (1 + 1e-9));
}

// 8 GB written in slot 0 and a GB written in slot 1, at a GB/s. One of them is away in slot 2, both in slot 3.
TEST(WholeMoves, ACopyIsNotInterrupted) {
  CycleProgram program = slots_of_seconds({1, 4, 5, 5, 1});
  program.storages = {
      within_turn(8 * kGB, {writes_in(0), reads_in(4)}), within_turn(1 * kGB, {writes_in(1), reads_in(4)}),
      within_turn(7 * kGB, {writes_in(2), reads_in(2)}), within_turn(15 * kGB, {writes_in(3), reads_in(3)})};
  const StepCycle cycle(program);
  const CycleLinks links = one_path(1e9, 9e12);
  // Both take the 9 s between slots 0 and 3. The long one is 4 s late for slot 2; where the short one goes first, a
  // second late, the long one is 3 s late for slot 3. A long copy that the short one interrupts would be in time.
  EXPECT_NEAR(moves_bound(cycle, links, 15 * kGB).seconds, 16.001, 1e-9);
  const std::optional<WholeMoves> found = find_whole_moves(cycle, links, 15 * kGB);
  ASSERT_TRUE(found && found->is_complete && found->best);
  EXPECT_NEAR(found->bound_seconds, 20.001, 1e-6);
  EXPECT_NEAR(found->best->seconds, 20.001, 1e-6);
}

TEST(WholeMoves, WhatCostsNothingGoesFirst) {
  CycleProgram program = three_beside();
  // 5 GB that nothing reads again: given up, nothing has to move.
  program.storages.push_back(within_turn(5 * kGB, {writes_in(0)}));
  program.storages.back().last = 3;
  program.storages[1].held = program.storages[1].moved = 4 * kGB;
  program.storages[0].held = program.storages[0].moved = 3 * kGB;
  const StepCycle cycle(program);
  EXPECT_FALSE(find_whole_moves(cycle, one_path(1e9, 1e9), 19 * kGB)) << "nothing is over the budget";
  EXPECT_EQ(whole_moves_bound_seconds(cycle, one_path(1e9, 1e9), 19 * kGB), 0);
  // 3 GB more are: 3 s each way.
  const std::optional<WholeMoves> found = find_whole_moves(cycle, one_path(1e9, 1e9), kBudget);
  ASSERT_TRUE(found && found->is_complete && found->best);
  EXPECT_NEAR(found->best->seconds, 4 + 3 + 3, 1e-8);
  expect_carried_out(cycle, one_path(1e9, 1e9), *found->best);
}

TEST(WholeMoves, SaysNothingOfSeveralPathsOrOfManyGaps) {
  const StepCycle cycle(three_beside());
  CycleLinks two = one_path(9e9, 9e9);
  two.paths.push_back(two.paths.front());
  EXPECT_FALSE(find_whole_moves(cycle, two, kBudget));
  EXPECT_EQ(whole_moves_bound_seconds(cycle, two, kBudget), 0);
  EXPECT_FALSE(find_whole_moves(cycle, one_path(9e9, 9e9), kBudget, {.gaps = 2}));
  EXPECT_FALSE(find_whole_moves(cycle, one_path(9e9, 9e9), kBudget, {.slots = 1}));
  EXPECT_TRUE(find_whole_moves(cycle, one_path(9e9, 9e9), kBudget, {.gaps = 3, .slots = 2}));
}

// Of 6, 5 and 4 GB the smallest is away for nothing: 3 of 7 are left, for which one of the others goes. Where all but
// the largest are, nothing is left.
TEST(WholeMoves, WithFewerGapsTheBoundIsThatOfTheLargest) {
  const StepCycle cycle(three_beside());
  const CycleLinks links = one_path(9e9, 9e9);
  EXPECT_NEAR(whole_moves_bound_seconds(cycle, links, kBudget - kGB, {.gaps = 2}), 4 + 2 * 5.0 / 9, 1e-8);
  EXPECT_EQ(whole_moves_bound_seconds(cycle, links, kBudget, {.gaps = 2}), 0) << "3 of 7 GB are less than half";
  EXPECT_EQ(whole_moves_bound_seconds(cycle, links, kBudget, {.gaps = 1}), 0);
  EXPECT_NEAR(whole_moves_bound_seconds(cycle, links, kBudget, {.slots = 1}), 5, 1e-8) << "a slot's time to come back";
}

// What is open where the search ends bounds all plans, and no plan is given that has no room.
TEST(WholeMoves, ABoundHoldsWhereTheSearchIsCutShort) {
  const StepCycle cycle(three_beside());
  CycleLinks links = one_path(9e9, 9e9);
  const std::optional<WholeMoves> cut = find_whole_moves(cycle, links, kBudget, {.work = 1});
  ASSERT_TRUE(cut);
  EXPECT_FALSE(cut->is_complete);
  EXPECT_LE(cut->bound_seconds, 6);
  EXPECT_GE(cut->bound_seconds, 4 + 2 * 7.0 / 9 - 1e-9) << "as much as bytes say";
  links.paths.front().room = 8 * kGB;
  const std::optional<WholeMoves> without_room = find_whole_moves(cycle, links, kBudget);
  ASSERT_TRUE(without_room);
  EXPECT_FALSE(without_room->best);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
