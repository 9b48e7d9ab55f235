// Plans of moves as the scheduler makes them: where links have no time, with what is taken first, and of content whose
// copy is issued in the turn behind the one that wrote it.
#include "policies/cycle/move_schedule.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "policies/cycle/cycle_replay.h"
#include "tests/support/small_cycle.h"

namespace memwall {
namespace {

// Writes storages of 1 GB in its first half and reads them in its second, the last first, as training steps do.
StepCycle mirrored(int layers) {
  CycleProgram program = slots_of_seconds(std::vector<int>(static_cast<std::size_t>(2 * layers), 1));
  const auto all = static_cast<std::uint32_t>(2 * layers);
  for (std::uint32_t i = 0; i < all / 2; ++i)
    program.storages.push_back(within_turn(kGB, {writes_in(i), reads_in(all - 1 - i)}));
  return StepCycle(std::move(program));
}

void expect_within(const StepCycle& cycle, const MoveSchedule& schedule, Bytes budget) {
  ASSERT_TRUE(schedule.fits);
  EXPECT_TRUE(is_sound(cycle, schedule.plan));
  const std::vector<Bytes> live = live_under(cycle, schedule.plan);
  EXPECT_LE(*std::max_element(live.begin(), live.end()), budget);
}

TEST(MoveSchedule, WhatIsUsedLastLeavesWhateverTimeTheLinksHave) {
  const StepCycle cycle = mirrored(8);
  MoveSettings settings;
  settings.farthest = true;
  // A copy takes 1,000 s, the turn 16 s.
  const CycleLinks slow = one_path(1e6, 1e6);
  const MoveSchedule schedule = schedule_moves(cycle, slow, 3 * kGB, settings);
  expect_within(cycle, schedule, 3 * kGB);
  // Those that are written first are read last. 5 of 8 GB have to be away.
  std::vector<std::uint32_t> moved;
  for (const PlannedMove& move : schedule.plan.moves) moved.push_back(cycle.gaps()[move.gap].storage);
  std::sort(moved.begin(), moved.end());
  EXPECT_EQ(moved, (std::vector<std::uint32_t>{0, 1, 2, 3, 4}));
  EXPECT_GE(to_seconds(replay_cycle(cycle, slow, schedule.plan).turn), 5000);
}

TEST(MoveSchedule, GapsThatAreNamedAreTakenFirst) {
  const StepCycle cycle = mirrored(8);
  const CycleLinks fast = one_path(100e9, 100e9);
  for (std::uint32_t named = 1; named < 6; ++named) {
    MoveSettings settings;
    for (std::uint32_t g = 0; g < cycle.gaps().size(); ++g)
      if (cycle.gaps()[g].storage == named) settings.first = {g};
    const MoveSchedule schedule = schedule_moves(cycle, fast, 7 * kGB, settings);
    expect_within(cycle, schedule, 7 * kGB);
    ASSERT_EQ(schedule.plan.moves.size(), 1u);
    EXPECT_EQ(cycle.gaps()[schedule.plan.moves[0].gap].storage, named);
  }
}

// A storage that lives across turns is written near the end of the turn: another gap of the same content begins in the
// next turn, in which its copy may be issued, but not behind the first of its drops.
TEST(MoveSchedule, ContentOfTheTurnBeforeLeavesNotBeforeItsCopy) {
  for (std::uint32_t peak = 1; peak < 9; ++peak)
    for (std::uint32_t write = 0; write < 10; ++write) {
      CycleProgram program = slots_of_seconds(std::vector<int>(10, 1));
      std::vector<CycleTouch> touches = {writes_in(write), reads_in((write + 1) % 10), reads_in((write + 4) % 10)};
      std::sort(touches.begin(), touches.end(), [](auto a, auto b) { return a.slot < b.slot; });
      const CycleStorage state = across_turns(4 * kGB, 10, std::move(touches));
      program.storages = {state, within_turn(4 * kGB, {writes_in(peak), reads_in(peak)})};
      const StepCycle cycle(std::move(program));
      const std::vector<Bytes> least = cycle.least();
      if (*std::max_element(least.begin(), least.end()) > 4 * kGB) continue;
      for (const bool farthest : {false, true}) {
        MoveSettings settings;
        settings.farthest = farthest;
        expect_within(cycle, schedule_moves(cycle, one_path(3e9, 5e9), 4 * kGB, settings), 4 * kGB);
      }
    }
}

}  // namespace
}  // namespace memwall
