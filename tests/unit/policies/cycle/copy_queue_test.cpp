// How long copies take that follow each other and share links, and what slots leave of a link's time.
#include "policies/cycle/copy_queue.h"

#include <gtest/gtest.h>

#include "policies/cycle/cycle_replay.h"
#include "policies/cycle/link_time.h"
#include "tests/support/small_cycle.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

void expect_at(Time at, double seconds) { EXPECT_NEAR(to_seconds(at), seconds, 1e-9); }

TEST(CopyQueue, CopiesOfAPathFollowEachOther) {
  CopyQueue queue({{10e9, from_seconds(0.5)}}, 10e9);
  const std::size_t first = queue.issue(0, 10 * kGB, Time{}), second = queue.issue(0, 5 * kGB, Time{});
  expect_at(queue.done(first), 1.5);
  expect_at(queue.done(second), 2.5);
  const std::size_t third = queue.issue(0, 10 * kGB, from_seconds(4));
  expect_at(queue.done(third), 5.5);
  expect_at(queue.idle(0), 5.5);
}

TEST(CopyQueue, PathsShareTheLinkEvenly) {
  CopyQueue queue({{10e9, {}}, {10e9, {}}}, 10e9);
  const std::size_t long_one = queue.issue(0, 10 * kGB, Time{}), short_one = queue.issue(1, 5 * kGB, Time{});
  expect_at(queue.done(short_one), 1);
  expect_at(queue.done(long_one), 1.5);
}

TEST(CopyQueue, ASlowPathLeavesTheRest) {
  CopyQueue queue({{10e9, {}}, {2e9, {}}}, 10e9);
  const std::size_t fast = queue.issue(0, 8 * kGB, Time{}), slow = queue.issue(1, 2 * kGB, Time{});
  expect_at(queue.done(fast), 1);
  expect_at(queue.done(slow), 1);
}

TEST(LinkTime, CopiesTakeTheTimeOfSlots) {
  const std::vector<Duration> times(4, from_seconds(1));
  LinkTime link(times);
  EXPECT_EQ(link.earliest(from_seconds(1.5), 0, 4), 2);
  EXPECT_EQ(link.latest(from_seconds(1.5), 0, 4), 2);
  EXPECT_EQ(link.earliest(from_seconds(1.5), 3, 7), 5) << "into the next turn";
  EXPECT_EQ(link.earliest(from_seconds(2), 0, 1), std::nullopt);
  link.take_earliest(from_seconds(1.5), 0);
  EXPECT_EQ(link.earliest(from_seconds(1), 0, 4), 3) << "half of slot 1 and half of slot 2";
  link.take_latest(from_seconds(2), 4);
  EXPECT_EQ(link.earliest(from_seconds(1), 0, 4), std::nullopt);
  EXPECT_EQ(link.earliest(from_seconds(0.5), 0, 4), 2);
}

// Slots that have no time left are skipped; with more time they are not.
TEST(LinkTime, MoreTimeIsThereForLaterCopies) {
  const std::vector<Duration> times(4, from_seconds(1));
  LinkTime link(times);
  link.take_earliest(from_seconds(3), 0);
  link.take_earliest(from_seconds(0.5), 0);
  EXPECT_EQ(link.earliest(from_seconds(0.5), 0, 4), 4);
  link.give({Duration{}, from_seconds(2), Duration{}, Duration{}});
  EXPECT_EQ(link.earliest(from_seconds(2), 0, 4), 2);
  link.take_earliest(from_seconds(2), 0);
  EXPECT_EQ(link.earliest(from_seconds(0.5), 0, 4), 4) << "what it has taken lies in slot 1";
  link.give({Duration{}, Duration{}, from_seconds(1), Duration{}});
  EXPECT_EQ(link.latest(from_seconds(1), 0, 3), 2);
  link.take_latest(from_seconds(1), 3);
  EXPECT_EQ(link.latest(from_seconds(0.5), 0, 3), std::nullopt);
}

// 10 GB out and back at 10 GB/s, away in slot 2 of five: slots 1 and 3 hide both.
TEST(CycleReplay, HidesCopiesBesideSlots) {
  CycleProgram program = slots_of_seconds({1, 1, 1, 1, 1});
  program.storages = {within_turn(10 * kGB, {writes_in(0), reads_in(4)})};
  const StepCycle cycle(program);
  const ReplayedCycle hidden = replay_cycle(cycle, one_path(10e9, 10e9), {{{0, 0, 1, 2, 3}}, {0}});
  expect_at(hidden.turn, 5);
  const ReplayedCycle slow = replay_cycle(cycle, one_path(5e9, 4e9), {{{0, 0, 1, 2, 3}}, {0}});
  expect_at(slow.turn, 5 + 1 + 1.5);
  expect_at(slow.waits[2], 1);
  expect_at(slow.waits[4], 1.5);
  EXPECT_EQ(slow.for_move[4], 0u);
  EXPECT_EQ(slow.for_move[0], ReplayedCycle::kNone);
}

// Read in slot 0 alone, and called back at its very start.
TEST(CycleReplay, WaitsForWhatComesBackLate) {
  CycleProgram program = slots_of_seconds({1, 1});
  program.storages = {across_turns(30 * kGB, 2, {reads_in(0)})};
  const StepCycle cycle(program);
  const MovePlan plan{{{0, 0, PlannedMove::kNoCopy, 1, 2}}, {0}};
  ASSERT_TRUE(is_sound(cycle, plan));
  const ReplayedCycle replayed = replay_cycle(cycle, one_path(10e9, 10e9), plan);
  expect_at(replayed.turn, 2 + 3);
  expect_at(replayed.waits[0], 3);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
