// Does each rule of docs/engine.md set the time it says? Small programs, times worked out by hand.
#include <gtest/gtest.h>

#include "sim/error.h"
#include "sim/engine/simulation.h"
#include "sim/trace/trace_builder.h"
#include "sim/trace/trace_check.h"
#include "tests/support/test_machine.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

constexpr Duration us(std::int64_t n) { return microseconds(n); }

class EngineTest : public ::testing::Test {
 protected:
  EngineTest() : machine_(test_machine()) {
    builder_.trace().name = "hand-written";
    builder_.trace().knowledge = {true, true, true, false, false};
    builder_.trace().constants = {};
    builder_.trace().constants.event_latency = Duration{};
    main_ = builder_.add_thread("main");
    compute_ = builder_.add_stream("compute", StreamRole::compute);
    side_ = builder_.add_stream("side", StreamRole::copy);
    builder_.trace().place("hbm");
    builder_.trace().place("host");
  }

  Op on_device(OpKind kind, std::uint16_t stream, Duration duration, Duration host_cost = {}) {
    Op op;
    op.kind = kind;
    op.thread = main_;
    op.stream = stream;
    op.duration = duration;
    op.host_cost = host_cost;
    return op;
  }

  OpId kernel(std::uint16_t stream, Duration duration, Duration host_cost = {}) {
    return builder_.append(on_device(OpKind::kernel, stream, duration, host_cost));
  }

  Op copy_to_host(std::uint16_t stream, Bytes bytes, Duration duration) {
    Op op = on_device(OpKind::copy, stream, duration);
    op.bytes = bytes;
    op.from = builder_.trace().place("hbm");
    op.to = builder_.trace().place("host");
    return op;
  }

  OpId synchronize(WaitFor what, Duration own = {}, Duration return_delay = {}) {
    Op op;
    op.kind = OpKind::synchronize;
    op.thread = main_;
    op.stream = compute_;
    op.wait_for = what;
    op.host_cost = own;
    op.return_delay = return_delay;
    return builder_.append(op);
  }

  SimulationResult run(const std::string& allocator = "ideal") {
    EXPECT_EQ(check(builder_.trace()), std::vector<std::string>{});
    SimulationOptions options;
    options.allocator = allocator;
    return simulate(builder_.trace(), machine_, options);
  }

  Machine machine_;
  TraceBuilder builder_;
  std::uint16_t main_ = 0, compute_ = 0, side_ = 0;
};

TEST_F(EngineTest, AKernelStartsAtTheEndOfItsCallPlusTheLaunchLatency) {
  builder_.trace().constants.launch_latency[0] = us(2);
  const OpId k = kernel(compute_, us(10), us(5));
  const auto r = run();
  EXPECT_EQ(r.records[k].start, us(7));
  EXPECT_EQ(r.records[k].end, us(17));
  EXPECT_EQ(r.records[k].device_reason, WaitReason::launch);
}

TEST_F(EngineTest, ANegativeLaunchLatencyNeverReachesBeforeTheCall) {
  builder_.trace().constants.launch_latency[0] = us(-2);
  const OpId early = kernel(compute_, us(1), us(5));
  const OpId clamped = kernel(side_, us(1), us(1));
  const auto r = run();
  EXPECT_EQ(r.records[early].start, us(3));
  EXPECT_EQ(r.records[clamped].start, us(5));
}

TEST_F(EngineTest, QueuedNeighboursAreSeparatedByTheGapOfTheirKinds) {
  builder_.trace().constants.stream_gap[0][0] = us(1);
  builder_.trace().constants.stream_gap[0][2] = us(3);
  kernel(compute_, us(10));
  const OpId second = kernel(compute_, us(10));
  const OpId third = builder_.append(on_device(OpKind::memset, compute_, us(1)));
  const auto r = run();
  EXPECT_EQ(r.records[second].start, us(11));
  EXPECT_EQ(r.records[second].device_reason, WaitReason::stream_order);
  EXPECT_EQ(r.records[third].start, us(24));
}

TEST_F(EngineTest, HostGapsAreWorkBetweenCalls) {
  Op first = on_device(OpKind::kernel, compute_, us(1), us(2));
  first.host_gap = us(3);
  const OpId a = builder_.append(first);
  const OpId b = builder_.append(first);
  const auto r = run();
  EXPECT_EQ(r.records[a].host_start, us(3));
  EXPECT_EQ(r.records[a].host_end, us(5));
  EXPECT_EQ(r.records[b].host_start, us(8));
}

TEST_F(EngineTest, AnEventMakesAStreamWaitForWhatWasRecorded) {
  builder_.trace().constants.event_latency = us(2);
  const OpId producer = kernel(compute_, us(50));
  const auto event = builder_.add_event();
  builder_.record(event, compute_, main_);
  kernel(compute_, us(500));  // after the record: not waited for
  builder_.wait(event, side_, main_);
  const OpId consumer = kernel(side_, us(1));
  const auto r = run();
  EXPECT_EQ(r.records[consumer].start, us(52));
  EXPECT_EQ(r.records[consumer].device_reason, WaitReason::event);
  EXPECT_EQ(r.records[consumer].device_cause, producer);
}

TEST_F(EngineTest, AnEventStandsBehindWaitsThatNoOpHasFollowedYet) {
  const auto third = builder_.add_stream("third", StreamRole::compute);
  kernel(compute_, us(50));
  const auto first = builder_.add_event(), second = builder_.add_event();
  builder_.record(first, compute_, main_);
  builder_.wait(first, side_, main_);
  builder_.record(second, side_, main_);  // side_ is empty, but waits
  builder_.wait(second, third, main_);
  const OpId consumer = kernel(third, us(1));
  EXPECT_EQ(run().records[consumer].start, us(50));
}

TEST_F(EngineTest, SynchronizeReturnsAfterTheWorkPlusItsReturnDelay) {
  const OpId k = kernel(compute_, us(100), us(5));
  const OpId sync = synchronize(WaitFor::stream, us(8), us(6));
  const auto r = run();
  EXPECT_EQ(r.records[sync].host_start, us(5));
  EXPECT_EQ(r.records[sync].host_end, us(111));
  EXPECT_EQ(r.records[sync].host_end_reason, WaitReason::synchronize);
  EXPECT_EQ(r.records[sync].host_end_cause, k);
}

TEST_F(EngineTest, SynchronizeOnAnIdleDeviceCostsOnlyItself) {
  const OpId sync = synchronize(WaitFor::device, us(8), us(6));
  const auto r = run();
  EXPECT_EQ(r.records[sync].host_end, us(8));
  EXPECT_FALSE(r.records[sync].host_end_waited);
}

TEST_F(EngineTest, DeviceSynchronizeWaitsForEveryStream) {
  kernel(compute_, us(10));
  const OpId slow = kernel(side_, us(70));
  const OpId sync = synchronize(WaitFor::device);
  const auto r = run();
  EXPECT_EQ(r.records[sync].host_end, us(70));
  EXPECT_EQ(r.records[sync].host_end_cause, slow);
}

TEST_F(EngineTest, ABlockingCopyMayReturnBeforeItsRecordEnds) {
  kernel(compute_, us(30));
  Op copy = copy_to_host(compute_, 1'000'000, us(100));
  copy.wait_for = WaitFor::own_op;
  copy.host_cost = us(4);
  copy.return_delay = us(-40);
  const OpId c = builder_.append(copy);
  const OpId next = kernel(compute_, us(1));
  const auto r = run();
  EXPECT_EQ(r.records[c].start, us(30));
  EXPECT_EQ(r.records[c].host_end, us(90));
  EXPECT_EQ(r.records[next].host_start, us(90));
}

TEST_F(EngineTest, AHandOverContinuesAnotherThread) {
  const auto other = builder_.add_thread("autograd");
  Op mark;
  mark.kind = OpKind::mark;
  mark.thread = main_;
  mark.host_gap = us(20);
  const OpId source = builder_.append(mark);
  Op hand;
  hand.kind = OpKind::hand_over;
  hand.thread = other;
  hand.target = source;
  hand.host_gap = us(5);
  const OpId h = builder_.append(hand);
  const auto r = run();
  EXPECT_EQ(r.records[h].host_start, us(25));
  EXPECT_EQ(r.records[h].host_reason, WaitReason::hand_over);
}

TEST_F(EngineTest, AFullLaunchQueueStopsTheHostUntilOneStarts) {
  builder_.trace().constants.launch_queue_depth = 2;
  kernel(compute_, us(10), us(1));  // starts at 1
  kernel(compute_, us(10), us(1));  // queued, starts at 11
  kernel(compute_, us(10), us(1));  // queued
  const OpId blocked = kernel(compute_, us(10), us(1));
  const auto r = run();
  EXPECT_EQ(r.records[blocked].host_start, us(3));
  EXPECT_EQ(r.records[blocked].host_end, us(12));
  EXPECT_EQ(r.records[blocked].host_end_reason, WaitReason::launch_queue);
}

TEST_F(EngineTest, AGraphCountsOnceInTheQueueAndKeepsItsInnerGap) {
  builder_.trace().constants.launch_queue_depth = 2;
  builder_.trace().constants.graph_gap = us(2);
  builder_.trace().constants.stream_gap[0][0] = us(9);
  Op graph = on_device(OpKind::graph_launch, compute_, {}, us(1));
  builder_.append(graph);
  OpId last = 0;
  for (int i = 0; i < 5; ++i) {
    Op node = on_device(OpKind::kernel, compute_, us(10));
    node.graph_member = true;
    last = builder_.append(node);
  }
  const OpId after = kernel(compute_, us(1), us(1));
  const auto r = run();
  EXPECT_EQ(r.records[last].end, us(1 + 5 * 10 + 4 * 2));
  EXPECT_EQ(r.records[after].host_end, us(2));  // not blocked by the five nodes
  EXPECT_EQ(r.records[after].start, r.records[last].end + us(9));
}

TEST_F(EngineTest, AKernelOfSeveralWavesLetsOthersInWithItsLastWave) {
  Op wide = on_device(OpKind::kernel, compute_, us(100));
  wide.waves = 4;
  const OpId w = builder_.append(wide);
  const OpId other = kernel(side_, us(1));
  const OpId memset =
      builder_.append(on_device(OpKind::memset, builder_.add_stream("third", StreamRole::compute), us(1)));
  const auto r = run();
  EXPECT_EQ(r.records[other].start, us(75));
  EXPECT_EQ(r.records[other].device_reason, WaitReason::occupancy);
  EXPECT_EQ(r.records[other].device_cause, w);
  EXPECT_EQ(r.records[memset].start, us(0));
}

TEST_F(EngineTest, CopiesOfOneDirectionServeOneAfterAnother) {
  const auto third = builder_.add_stream("third", StreamRole::copy);
  const OpId a = builder_.append(copy_to_host(side_, 1'000'000, us(100)));
  const OpId b = builder_.append(copy_to_host(third, 1'000'000, us(100)));
  const auto r = run();
  EXPECT_EQ(r.records[a].end, us(100));
  EXPECT_EQ(r.records[b].start, us(100));
  EXPECT_EQ(r.records[b].device_reason, WaitReason::copy_engine);
  EXPECT_EQ(r.records[b].device_cause, a);
}

TEST_F(EngineTest, OnlyWhatAPolicyAddsSlowsWhatWasCaptured) {
  // Two kernels that each ask for 80 % of the 1 TB/s of HBM.
  Op streaming = on_device(OpKind::kernel, compute_, us(100));
  streaming.bytes = 80'000'000;
  builder_.append(streaming);
  streaming.stream = side_;
  const OpId beside = builder_.append(streaming);
  EXPECT_EQ(run().records[beside].end, us(100));
  builder_.trace().ops[beside].added = true;
  // 0.8 + 0.8 > 1: each gets half, 100 us become 160 us.
  EXPECT_NEAR(to_microseconds(run().records[beside].end), 160, 1e-3);
}

TEST_F(EngineTest, AnAddedCollectiveTakesItsMultiprocessors) {
  machine_.gpu.multiprocessors = 100;
  machine_.gpu.collective_multiprocessors = 20;
  Op collective = on_device(OpKind::collective, side_, us(50));
  collective.added = true;
  builder_.append(collective);
  const OpId k = kernel(compute_, us(100));
  // 50 us at 80 % do 40; the other 60 run at full speed.
  EXPECT_NEAR(to_microseconds(run().records[k].end), 110, 1e-3);
}

TEST_F(EngineTest, FoldedRanksLoadASharedLinkTogether) {
  const int link = machine_.link("pcie_d2h");
  machine_.links[link].sharers = 4;
  Op copy = copy_to_host(side_, 1'000'000, us(100));  // 10 GB/s, all of the link
  copy.added = true;
  builder_.append(copy);
  EXPECT_NEAR(to_microseconds(run().end), 100, 1e-3);
  builder_.trace().ranks = 4;
  const auto r = run();
  EXPECT_NEAR(to_microseconds(r.end), 400, 1e-3);
  EXPECT_EQ(r.links[link].bytes, 4'000'000);
}

TEST_F(EngineTest, PlacedWorkIsTheStateBeforeTheWindow) {
  Op placed = on_device(OpKind::kernel, compute_, us(30));
  placed.placed = true;
  placed.host_gap = us(10);
  const OpId p = builder_.append(placed);
  const OpId k = kernel(compute_, us(5), us(1));
  const auto r = run();
  EXPECT_EQ(r.records[p].start, us(10));
  EXPECT_EQ(r.records[k].start, us(40));
}

TEST_F(EngineTest, MemoryIsTakenAndGivenInHostOrder) {
  const StorageId a = builder_.add_storage(1000, StorageKind::activation, "hbm", "a");
  const StorageId b = builder_.add_storage(500, StorageKind::workspace, "hbm", "b");
  builder_.alloc(a, main_);
  kernel(compute_, us(100));
  builder_.free(a, main_);  // the kernel still runs: stream-ordered reuse
  builder_.alloc(b, main_);
  builder_.free(b, main_);
  const auto r = run();
  const auto& hbm = r.tiers[machine_.tier("hbm")];
  EXPECT_EQ(hbm.peak_allocated, 1000);
  EXPECT_EQ(hbm.peak_by_kind[static_cast<int>(StorageKind::activation)], 1000);
  EXPECT_EQ(hbm.largest_at_peak, std::vector<StorageId>{a});
  EXPECT_TRUE(r.fits);
}

TEST_F(EngineTest, WhatDoesNotFitIsCountedAndTheRunGoesOn) {
  const int hbm = machine_.tier("hbm");
  machine_.tiers[hbm].capacity = 1200;
  const StorageId a = builder_.add_storage(1000, StorageKind::activation, "hbm", "a");
  const StorageId b = builder_.add_storage(500, StorageKind::workspace, "hbm", "b");
  builder_.alloc(a, main_);
  builder_.alloc(b, main_);
  const OpId k = kernel(compute_, us(100));
  const auto r = run();
  EXPECT_FALSE(r.fits);
  EXPECT_EQ(r.tiers[hbm].missing, 300);
  EXPECT_EQ(r.tiers[hbm].peak_allocated, 1500);
  EXPECT_EQ(r.records[k].end, us(100));
}

// A limit of 100 MiB: 60 and 30 are taken, 60 is given back and cut into 20 + 20 + 20 free, of which the middle one is
// in use: 45 find no piece although 40 are free.
class MemoryInPieces : public EngineTest {
 protected:
  StorageId alloc(Bytes mib) {
    const StorageId storage = builder_.add_storage(MiB(mib), StorageKind::activation, "hbm", "");
    builder_.alloc(storage, main_);
    return storage;
  }
  void SetUp() override {
    machine_.tiers[hbm_].capacity = MiB(100);
    const StorageId large = alloc(60);
    alloc(30);
    builder_.free(large, main_);
    const StorageId small = alloc(20);
    alloc(20);
    builder_.free(small, main_);
    alloc(45);
  }

  const int hbm_ = machine_.tier("hbm");
};

TEST_F(MemoryInPieces, AreMissingAsMuchAsWasAskedFor) {
  const auto r = run("pytorch");
  EXPECT_FALSE(r.fits);
  EXPECT_EQ(r.tiers[hbm_].missing, MiB(45));
  EXPECT_TRUE(run("ideal").fits);
}

// Then no allocator could have made it fit, and what lives beyond the capacity is what is missing.
TEST_F(MemoryInPieces, AreMissingByWhatLivesWhereMoreThanFitsDoes) {
  alloc(20);  // 30, 20, 45 and 20
  EXPECT_EQ(run("pytorch").tiers[hbm_].missing, MiB(16)) << "a segment of 46 MiB has no rest worth splitting off";
  EXPECT_EQ(run("ideal").tiers[hbm_].missing, MiB(15));
}

TEST_F(EngineTest, StepsRunFromBoundaryToBoundary) {
  Op mark;
  mark.kind = OpKind::mark;
  mark.thread = main_;
  const OpId first = builder_.append(mark);
  const OpId k = kernel(compute_, us(10), us(30));
  const OpId second = builder_.append(mark);
  const OpId l = kernel(compute_, us(10), us(5));
  builder_.trace().steps = {{"0", first, second}, {"1", second, static_cast<OpId>(l + 1)}};
  const auto r = run();
  ASSERT_EQ(r.steps.size(), 2u);
  EXPECT_EQ(r.steps[0].step_time, us(30));
  EXPECT_EQ(r.steps[0].gpu_span, us(10));
  EXPECT_EQ(r.steps[1].step_time, r.records[l].end - us(30));
  EXPECT_EQ(r.records[k].start, us(30));
}

TEST_F(EngineTest, ATierThatTheMachineLacksIsRefusedByName) {
  builder_.trace().place("tape");
  try {
    run();
    FAIL() << "expected a UsageError";
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("'tape'"), std::string::npos) << error.what();
  }
}

TEST_F(EngineTest, TheSameInputGivesTheSameResult) {
  for (int i = 0; i < 50; ++i) kernel(i % 2 ? compute_ : side_, us(3 + i % 7), us(1));
  const auto a = run(), b = run();
  for (std::size_t i = 0; i < a.records.size(); ++i) {
    EXPECT_EQ(a.records[i].start, b.records[i].start);
    EXPECT_EQ(a.records[i].host_end, b.records[i].host_end);
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
