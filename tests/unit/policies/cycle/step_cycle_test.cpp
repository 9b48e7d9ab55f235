// Slots, touches, gaps: what lives when, and which content a gap has.
#include "policies/cycle/step_cycle.h"

#include <gtest/gtest.h>

#include "policies/cycle/move_plan.h"
#include "tests/support/small_cycle.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

TEST(StepCycle, AGapLiesBetweenTwoTouches) {
  CycleProgram program = slots_of_seconds({1, 1, 1, 1});
  program.storages = {within_turn(10, {writes_in(0), reads_in(3)}), within_turn(4, {writes_in(1), reads_in(2)})};
  const StepCycle cycle(program);
  EXPECT_EQ(cycle.live(), (std::vector<Bytes>{10, 14, 14, 10}));
  EXPECT_EQ(cycle.least(), (std::vector<Bytes>{10, 4, 4, 10}));
  EXPECT_EQ(cycle.peak(), 14);
  ASSERT_EQ(cycle.gaps().size(), 1u);
  const CycleGap& gap = cycle.gaps()[0];
  EXPECT_EQ(gap.storage, 0u);
  EXPECT_EQ(gap.begin, 1);
  EXPECT_EQ(gap.end, 3);
  EXPECT_EQ(gap.written, 0);
  EXPECT_TRUE(gap.needs_copy && gap.needs_content && gap.returns);
}

TEST(StepCycle, WhatNoTurnWritesNeedsNoCopy) {
  CycleProgram program = slots_of_seconds({1, 1, 1, 1});
  program.storages = {across_turns(10, 4, {reads_in(0), reads_in(2)})};
  const StepCycle cycle(program);
  ASSERT_EQ(cycle.gaps().size(), 2u);
  EXPECT_EQ(cycle.gaps()[1].begin, 3);
  EXPECT_EQ(cycle.gaps()[1].end, 4) << "slot 0 of the next turn";
  for (const CycleGap& gap : cycle.gaps()) EXPECT_TRUE(!gap.needs_copy && gap.needs_content);
  EXPECT_EQ(cycle.gaps()[0].version, cycle.gaps()[1].version);
}

// What slot 2 writes is read by slot 0 of the next turn, and waits in both gaps.
TEST(StepCycle, AVersionReachesIntoTheNextTurn) {
  CycleProgram program = slots_of_seconds({1, 1, 1, 1, 1});
  program.storages = {across_turns(10, 5, {reads_in(0), updates_in(2)})};
  const StepCycle cycle(program);
  ASSERT_EQ(cycle.gaps().size(), 2u);
  EXPECT_EQ(cycle.gaps()[0].begin, 1);
  EXPECT_EQ(cycle.gaps()[0].end, 2);
  EXPECT_EQ(cycle.gaps()[0].written, -3);
  EXPECT_EQ(cycle.gaps()[1].begin, 3);
  EXPECT_EQ(cycle.gaps()[1].end, 5);
  EXPECT_EQ(cycle.gaps()[1].written, 2);
  EXPECT_EQ(cycle.gaps()[0].version, cycle.gaps()[1].version);
}

TEST(StepCycle, WhatIsOverwrittenNeedNotComeBack) {
  CycleProgram program = slots_of_seconds({1, 1, 1});
  program.storages = {within_turn(10, {writes_in(0), writes_in(2)})};
  const StepCycle cycle(program);
  ASSERT_EQ(cycle.gaps().size(), 1u);
  EXPECT_FALSE(cycle.gaps()[0].needs_copy || cycle.gaps()[0].needs_content);
  EXPECT_TRUE(cycle.gaps()[0].returns);
}

TEST(StepCycle, SlotsGoOnInTheNextTurn) {
  const StepCycle cycle(slots_of_seconds({1, 2, 3}));
  EXPECT_EQ(cycle.turn(), from_seconds(6));
  EXPECT_EQ(cycle.start(4), from_seconds(7));
  EXPECT_EQ(cycle.start(-1), from_seconds(-3));
}

CycleProgram one_gap() {
  CycleProgram program = slots_of_seconds({1, 1, 1, 1});
  program.storages = {within_turn(10, {writes_in(0), reads_in(3)})};
  return program;
}

TEST(MovePlan, IsAwayFromDropToFetch) {
  const StepCycle cycle(one_gap());
  const MovePlan plan{{{0, 0, 1, 1, 2}}, {0}};
  EXPECT_TRUE(is_sound(cycle, plan));
  EXPECT_EQ(live_under(cycle, plan), (std::vector<Bytes>{10, 0, 10, 10}));
}

TEST(MovePlan, NeedsACopyBehindTheWriteAndBeforeTheDrop) {
  const StepCycle cycle(one_gap());
  EXPECT_TRUE(is_sound(cycle, {{{0, 0, 2, 2, 3}}, {0}}));
  EXPECT_FALSE(is_sound(cycle, {{{0, 0, 0, 2, 3}}, {0}})) << "copied when it is written";
  EXPECT_FALSE(is_sound(cycle, {{{0, 0, 2, 1, 3}}, {0}})) << "copied behind the drop";
  EXPECT_FALSE(is_sound(cycle, {{{0, 0, PlannedMove::kNoCopy, 1, 3}}, {0}}));
  EXPECT_FALSE(is_sound(cycle, {{{0, 0, 1, 1, 4}}, {0}})) << "back behind its use";
  EXPECT_FALSE(is_sound(cycle, {{{0, 0, 1, 2, 2}}, {0}})) << "never away";
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
