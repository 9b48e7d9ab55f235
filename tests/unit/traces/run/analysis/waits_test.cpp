// How long do lanes stand still, and for what? In cases worked out by hand.
#include "traces/run/analysis/waits.h"

#include <gtest/gtest.h>

#include "tests/support/handmade_run.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

std::vector<std::string> lane_waits(const Run& run) {
  std::vector<std::string> lines;
  for (const LaneWait& wait : total_waits(run).lanes)
    lines.push_back(wait.lane + ", " + std::string(to_string(wait.reason)) + ": " +
                    std::to_string(wait.time.count() / 1'000'000) + " us, " + std::to_string(wait.count) + " ops" +
                    (wait.on_host ? ", host" : ""));
  return lines;
}
using Lines = std::vector<std::string>;

// A thousand kernels of 10 us, all launched at once: each waits for all before it, and the stream never stands still.
TEST(LaneWaits, OpsBehindOneAnotherDoNotMakeAStreamStandStill) {
  HandmadeRun hand;
  hand.device(OpKind::kernel, "k", 0, 0, 0, 0, 10);
  for (OpId id = 1; id < 1000; ++id)
    hand.device(OpKind::kernel, "k", 0, 0, 0, 10.0 * id, 10.0 * (id + 1), WaitReason::stream_order, id - 1);
  const memwall::Run run = hand.finish();
  const Waits waits = total_waits(run);
  EXPECT_GT(waits.device[static_cast<int>(WaitReason::stream_order)].time.seconds(), 400 * to_seconds(run.result.end));
  EXPECT_TRUE(waits.lanes.empty());
}

TEST(LaneWaits, AGapIsTheHostsUntilTheLaunchAndTheBoundsAfterwards) {
  HandmadeRun hand;
  hand.device(OpKind::kernel, "a", 0, 0, 1, 1, 10);
  hand.device(OpKind::copy, "c", 1, 1, 2, 2, 40);
  // Launched at 16: 6 us for the host, 24 for the copy.
  hand.device(OpKind::kernel, "b", 0, 15, 16, 40, 50, WaitReason::event, 1);
  // The stream leaves 3 us between two of its ops.
  hand.device(OpKind::kernel, "d", 0, 16, 17, 53, 60, WaitReason::stream_order, 2);
  hand.device(OpKind::kernel, "e", 0, 75, 77, 77, 80);
  EXPECT_EQ(lane_waits(hand.finish()), (Lines{"stream compute (compute), launch: 23 us, 2 ops",
                                              "stream compute (compute), stream_order: 3 us, 1 ops",
                                              "stream compute (compute), event: 24 us, 1 ops"}));
}

TEST(LaneWaits, BeforeItsFirstOpAStreamWaitsForWhatHoldsThatUp) {
  HandmadeRun hand;
  hand.device(OpKind::kernel, "a", 0, 0, 1, 1, 10);
  hand.device(OpKind::copy, "c", 1, 4, 5, 10, 20, WaitReason::event, 0);
  EXPECT_EQ(lane_waits(hand.finish()), (Lines{"stream copy (copy), event: 5 us, 1 ops"}));
}

TEST(LaneWaits, ACollectiveThatHasBegunWaitsForItsPeer) {
  HandmadeRun hand;
  hand.device(OpKind::collective, "all_reduce", 2, 0, 1, 1, 50);
  hand.device(OpKind::collective, "all_reduce", 3, 1, 2, 30, 50);
  hand.record(0).peer = 1;
  EXPECT_EQ(lane_waits(hand.finish()), (Lines{"stream communication (communication), peer: 29 us, 1 ops"}));
}

TEST(LaneWaits, AThreadWaitsBeyondItsCallsOwnCost) {
  HandmadeRun hand;
  const OpId kernel = hand.device(OpKind::kernel, "a", 0, 0, 1, 1, 30);
  const OpId wait = hand.host(OpKind::synchronize, "wait", 1, 31);
  hand.op(wait).host_cost = microseconds(2);
  hand.waited(wait, WaitReason::synchronize, kernel);
  EXPECT_EQ(lane_waits(hand.finish()), (Lines{"main, synchronize: 28 us, 1 ops, host"}));
}

// Two threads launch into one stream, and the one that the trace has first comes later.
TEST(LaneWaits, CountOpsInTheOrderInWhichTheyRan) {
  HandmadeRun hand;
  hand.device(OpKind::kernel, "first", 0, 0, 1, 1, 10);
  hand.device(OpKind::kernel, "late", 0, 60, 61, 61, 70);
  hand.device(OpKind::kernel, "early", 0, 20, 21, 21, 50);
  EXPECT_EQ(lane_waits(hand.finish()), (Lines{"stream compute (compute), launch: 22 us, 2 ops"}));
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
