// The bound on a turn's time, by hand: what has to pass the links around a peak, what may be made again instead, and
// what costs nothing.
#include "policies/cycle/moves_bound.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/support/small_cycle.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

constexpr double kNeverAgain = std::numeric_limits<double>::infinity();

// Four slots of a second. In slots 1 and 2 the second storage lives beside the first, which nothing touches there.
CycleProgram two_beside() {
  CycleProgram program = slots_of_seconds({1, 1, 1, 1});
  program.storages = {within_turn(10 * kGB, {writes_in(0), reads_in(3)}),
                      within_turn(10 * kGB, {writes_in(1), reads_in(2)})};
  return program;
}

TEST(MovesBound, OfWhatLeavesBeforeAPeakAndComesBackBehindIt) {
  const StepCycle cycle(two_beside());
  const MovesBound bound = moves_bound(cycle, one_path(10e9, 20e9), 10 * kGB);
  EXPECT_DOUBLE_EQ(bound.ideal_seconds, 4);
  // Out between the end of slot 0 and the start of slot 1: 1 s. In between slots 2 and 3: half a second.
  EXPECT_DOUBLE_EQ(bound.seconds, 5.5);
  EXPECT_TRUE(bound.feasible);
  EXPECT_EQ(bound.least_budget, 10 * kGB);
  EXPECT_EQ(bound.excess, 10 * kGB);
  ASSERT_EQ(bound.windows.size(), 2u);
  EXPECT_TRUE(bound.windows[0].out);
  EXPECT_EQ(bound.windows[0].from, 0);
  EXPECT_EQ(bound.windows[0].to, 1);
  EXPECT_FALSE(bound.windows[1].out);
  EXPECT_EQ(bound.windows[1].from, 2);
  EXPECT_EQ(bound.windows[1].to, 3);
  EXPECT_DOUBLE_EQ(bound.per_byte, -1 / 10e9 - 1 / 20e9);
  EXPECT_DOUBLE_EQ(bound.per_out_rate, -10e9 / (10e9 * 10e9));
  EXPECT_DOUBLE_EQ(bound.per_in_rate, -10e9 / (20e9 * 20e9));
}

TEST(MovesBound, IsWeakerWhereItLooksAtFewerSlots) {
  const StepCycle cycle(two_beside());
  const CycleLinks links = one_path(10e9, 20e9);
  EXPECT_DOUBLE_EQ(moves_bound(cycle, links, 10 * kGB, 4).seconds, 5.5);
  // At slot 1 alone there is time to come back.
  EXPECT_DOUBLE_EQ(moves_bound(cycle, links, 10 * kGB, 1).seconds, 5);
}

// Four storages of 10 GB rest beside a fifth: of 50 GB 30 are over the budget.
TEST(MovesBound, BuffersOnTheWayMayBeAheadOfTheSlowerLink) {
  CycleProgram program = two_beside();
  for (int i = 0; i < 3; ++i) program.storages.push_back(program.storages.front());
  const StepCycle cycle(program);
  CycleLinks links = one_path(2e9, 4e9);
  EXPECT_DOUBLE_EQ(moves_bound(cycle, links, 20 * kGB).seconds, 4 + 15 + 7.5);
  links.paths.front().staged_out_rate = links.staged_out = 10e9;
  links.paths.front().staged_in_rate = links.staged_in = 20e9;
  // Two buffers hold 20 of the 30 GB.
  EXPECT_DOUBLE_EQ(moves_bound(cycle, links, 20 * kGB).seconds, 4 + 5 + 2.5);
  const RerunPrices none(cycle.gaps().size(), RerunPrice(kNeverAgain));
  EXPECT_DOUBLE_EQ(joint_bound_seconds(cycle, links, 20 * kGB, none), 4 + 5);
  // 20 of 50 GB: what the way to the buffers takes.
  EXPECT_DOUBLE_EQ(moves_bound(cycle, links, 30 * kGB).seconds, 4 + 2 + 1);
}

TEST(MovesBound, WithoutLinksIsWhatTheCycleAndTheBudgetSay) {
  const StepCycle cycle(two_beside());
  const MovesBound bound = bound_without_links(cycle, 10 * kGB);
  EXPECT_DOUBLE_EQ(bound.seconds, 4);
  EXPECT_DOUBLE_EQ(bound.ideal_seconds, 4);
  EXPECT_EQ(bound.least_budget, 10 * kGB);
  EXPECT_EQ(bound.excess, 10 * kGB);
  EXPECT_EQ(bound.worst, 1u);
  EXPECT_TRUE(bound.feasible);
  EXPECT_FALSE(bound_without_links(cycle, 9 * kGB).feasible);
}

TEST(MovesBound, IsTheIdealWhereAllFits) {
  const MovesBound bound = moves_bound(StepCycle(two_beside()), one_path(1, 1), 20 * kGB);
  EXPECT_DOUBLE_EQ(bound.seconds, 4);
  EXPECT_TRUE(bound.windows.empty());
}

TEST(MovesBound, TimeOfTheDeviceCountsInAWindow) {
  CycleProgram program = slots_of_seconds({1, 1, 1, 1, 1});
  program.storages = {within_turn(20 * kGB, {writes_in(0), reads_in(4)}),
                      within_turn(10 * kGB, {writes_in(2), reads_in(2)})};
  // 20 GB pass in 2 s; slot 1 and slot 3 are between.
  EXPECT_DOUBLE_EQ(moves_bound(StepCycle(program), one_path(10e9, 10e9), 10 * kGB).seconds, 7);
}

// A copy of what no turn writes was made once. Wherever it lies, memory for it is only taken again.
TEST(MovesBound, WhatNeverChangesLeavesForNothing) {
  CycleProgram program = slots_of_seconds({1, 1, 1});
  program.storages = {across_turns(10 * kGB, 3, {reads_in(0)}), within_turn(10 * kGB, {writes_in(1), reads_in(1)})};
  // Back between slot 1 and the next turn's slot 0: a second's work for a copy of four.
  const MovesBound bound = moves_bound(StepCycle(program), one_path(1, 2.5e9), 10 * kGB);
  EXPECT_DOUBLE_EQ(bound.seconds, 3 + 4 - 1);
}

TEST(MovesBound, WhatNothingTouchesMayBeElsewhereForEver) {
  CycleProgram program = two_beside();
  program.storages.push_back(across_turns(5 * kGB, 4, {}));
  const double without = moves_bound(StepCycle(two_beside()), one_path(10e9, 10e9), 10 * kGB).seconds;
  EXPECT_DOUBLE_EQ(moves_bound(StepCycle(program), one_path(10e9, 10e9), 10 * kGB).seconds, without);
}

TEST(MovesBound, WhatIsNotYetWrittenNeedsNoMemory) {
  CycleProgram program = two_beside();
  program.storages.push_back(within_turn(5 * kGB, {writes_in(3)}));
  program.storages.back().first = 0;
  EXPECT_DOUBLE_EQ(moves_bound(StepCycle(program), one_path(10e9, 10e9), 20 * kGB).seconds, 4);
}

// Planners of memory plans may move what another stream writes: the bound does not rely on it to stay.
TEST(MovesBound, WhatTheCycleDoesNotMoveCountsWhereItIsTouched) {
  CycleProgram program = two_beside();
  program.storages.push_back(within_turn(5 * kGB, {writes_in(0), reads_in(3)}));
  program.storages.back().fixed = true;
  EXPECT_DOUBLE_EQ(moves_bound(StepCycle(program), one_path(10e9, 10e9), 20 * kGB).seconds, 4);
}

TEST(MovesBound, WhatTheFirstTierHasNoRoomForPassesTheOthersLinks) {
  CycleLinks links = one_path(10e9, 10e9);
  links.paths.front().room = 4 * kGB;
  links.paths.push_back(links.paths.front());
  links.paths.back().out_rate = links.paths.back().in_rate = 1e9;
  links.paths.back().room = Bytes{1} << 60;
  // 6 GB at 1 GB/s each way, beside which the others have time.
  EXPECT_DOUBLE_EQ(moves_bound(StepCycle(two_beside()), links, 10 * kGB).seconds, 4 + 6 + 6);
  links.paths.pop_back();
  EXPECT_FALSE(moves_bound(StepCycle(two_beside()), links, 10 * kGB).feasible);
}

TEST(JointBound, TakesWhatIsLess) {
  const StepCycle cycle(two_beside());
  ASSERT_EQ(cycle.gaps().size(), 1u);
  const CycleLinks links = one_path(10e9, 20e9);
  // Out takes a second; to make all again half of one.
  EXPECT_DOUBLE_EQ(joint_bound_seconds(cycle, links, 10 * kGB, {0.5 / 10e9}), 4.5);
  EXPECT_DOUBLE_EQ(joint_bound_seconds(cycle, links, 10 * kGB, {kNeverAgain}), 5);
  EXPECT_DOUBLE_EQ(joint_bound_seconds(cycle, links, 10 * kGB, {2 / 10e9}), 5);
}

TEST(JointBound, MakesNothingAgainFromWhatIsOverwritten) {
  const StepCycle cycle(two_beside());
  // What is away in slot 2 comes back behind it, in two seconds; made again it takes half of one.
  const CycleLinks links = one_path(10e9, 5e9);
  EXPECT_DOUBLE_EQ(joint_bound_seconds(cycle, links, 10 * kGB, {{0.5 / 10e9, 3}}), 4.5);
  EXPECT_DOUBLE_EQ(joint_bound_seconds(cycle, links, 10 * kGB, {{0.5 / 10e9, 2}}), 6);
  EXPECT_DOUBLE_EQ(joint_bound_seconds(cycle, links, 10 * kGB, {{0.5 / 10e9, 1}}), 6);
}

TEST(JointBound, CountsWhatIsMadeAgainBeforeIt) {
  const StepCycle cycle(two_beside());
  const CycleLinks links = one_path(10e9, 20e9);
  RerunPrice price(0.2 / 10e9);
  price.with_inputs = 0.6 / 10e9;
  EXPECT_DOUBLE_EQ(joint_bound_seconds(cycle, links, 10 * kGB, {price}), 4.6);
  // Behind slot 2 the link brings back 20 GB in each second of re-runs.
  price.inputs_from = -1;
  EXPECT_NEAR(joint_bound_seconds(cycle, links, 10 * kGB, {price}), 4 + 0.6 / 2.2, 1e-9)
      << "its input may have left before the window";
  price.lost_from = 3;
  EXPECT_DOUBLE_EQ(joint_bound_seconds(cycle, links, 10 * kGB, {price}), 4.2) << "its input is still there";
}

// 10 GB have to be away in slot 2. What slot 1 writes has no time to leave, what slot 3 reads has none to come back.
TEST(JointBound, HasWindowsThatCrossAPeak) {
  CycleProgram program = slots_of_seconds({1, 1, 1, 1, 1, 1});
  program.storages = {within_turn(10 * kGB, {writes_in(1), reads_in(5)}),
                      across_turns(10 * kGB, 6, {reads_in(1), reads_in(3)}),
                      within_turn(10 * kGB, {writes_in(2), reads_in(2)})};
  const StepCycle cycle(program);
  const RerunPrices never(cycle.gaps().size(), kNeverAgain);
  EXPECT_DOUBLE_EQ(joint_bound_seconds(cycle, one_path(10e9, 10e9), 20 * kGB, never), 7);
  EXPECT_DOUBLE_EQ(joint_bound_seconds(cycle, one_path(10e9, 20e9), 20 * kGB, never), 6.5);
}

// Behind slot 2 both come back for slot 3: 7 GB by the link in 0.7 s, while 3 GB are made again in 0.15 s.
TEST(JointBound, TheLinkGoesOnWhileOthersAreMadeAgain) {
  CycleProgram program = slots_of_seconds({1, 1, 1, 1});
  program.storages = {within_turn(3 * kGB, {writes_in(0), reads_in(3)}),
                      across_turns(7 * kGB, 4, {reads_in(0), reads_in(3)}),
                      within_turn(10 * kGB, {writes_in(2), reads_in(2)})};
  const StepCycle cycle(program);
  RerunPrices prices;
  for (const CycleGap& gap : cycle.gaps()) prices.push_back(gap.storage == 0 ? 0.05e-9 : kNeverAgain);
  EXPECT_NEAR(joint_bound_seconds(cycle, one_path(10e9, 10e9), 10 * kGB, prices), 4.7, 1e-9);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
