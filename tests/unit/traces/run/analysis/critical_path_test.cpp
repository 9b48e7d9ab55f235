// Does the walk back name, for every instant, what the run was waiting for? Times in microseconds.
#include "traces/run/analysis/critical_path.h"

#include "tests/support/handmade_run.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

// "2-5 host call 0" per segment.
std::vector<std::string> described(const Run& run) {
  std::vector<std::string> lines;
  for (const PathSegment& s : critical_path(run)) {
    const auto us = [](Time t) { return std::to_string(t.count() / 1'000'000); };
    lines.push_back(us(s.begin) + "-" + us(s.end) + " " + std::string(to_string(s.time_class)) + " " +
                    std::string(to_string(s.part)) + " " + (s.op == kNoOp ? "?" : std::to_string(s.op)));
  }
  return lines;
}

using Lines = std::vector<std::string>;

TEST(CriticalPath, OfARunWithoutOpsIsEmpty) { EXPECT_TRUE(critical_path(HandmadeRun().finish()).empty()); }

TEST(CriticalPath, LeadsFromAKernelThroughItsLaunch) {
  HandmadeRun hand;
  hand.device(OpKind::kernel, "gemm", 0, 2, 5, 6, 10);
  EXPECT_EQ(described(hand.finish()),
            (Lines{"0-2 host gap 0", "2-5 host call 0", "5-6 host latency 0", "6-10 compute work 0"}));
}

TEST(CriticalPath, FollowsStreamOrderAndEvents) {
  HandmadeRun hand;
  hand.device(OpKind::copy, "h2d", 1, 0, 1, 2, 12);                                        // 0
  hand.device(OpKind::kernel, "a", 0, 1, 2, 3, 8);                                         // 1
  const OpId b = hand.device(OpKind::kernel, "b", 0, 2, 3, 13, 20, WaitReason::event, 0);  // 2
  hand.device(OpKind::kernel, "c", 0, 3, 4, 21, 25, WaitReason::stream_order, b);          // 3
  EXPECT_EQ(described(hand.finish()),
            (Lines{"0-1 host call 0", "1-2 host latency 0", "2-12 copy work 0", "12-13 host latency 2",
                   "13-20 compute work 2", "20-21 host latency 3", "21-25 compute work 3"}));
}

TEST(CriticalPath, EntersAnOccupyingKernelBeforeItsEnd) {
  HandmadeRun hand;
  hand.device(OpKind::kernel, "wide", 0, 0, 1, 1, 11);                             // 0
  hand.device(OpKind::kernel, "other", 1, 1, 2, 9, 20, WaitReason::occupancy, 0);  // 1
  EXPECT_EQ(described(hand.finish()), (Lines{"0-1 host call 0", "1-9 compute work 0", "9-20 compute work 1"}));
}

TEST(CriticalPath, TellsCollectivesStorageAndRecomputeApart) {
  HandmadeRun hand;
  hand.device(OpKind::collective, "all_reduce", 2, 0, 1, 1, 4);                                  // 0
  hand.device(OpKind::storage_io, "read", 3, 1, 2, 4, 9, WaitReason::event, 0);                  // 1
  const OpId again = hand.device(OpKind::kernel, "gemm", 0, 2, 3, 9, 10, WaitReason::event, 1);  // 2
  hand.op(again).phase = Phase::recompute;
  hand.device(OpKind::memset, "memset", 0, 3, 4, 10, 12, WaitReason::stream_order, again);  // 3
  EXPECT_EQ(described(hand.finish()), (Lines{"0-1 host call 0", "1-4 collective work 0", "4-9 storage work 1",
                                             "9-10 recompute work 2", "10-12 compute work 3"}));
}

// Of work from before the window only when it began is known; it waited for what its stream did before.
TEST(CriticalPath, GoesThroughTheWorkThatWasThereWhenTheCaptureBegan) {
  HandmadeRun hand;
  for (const auto& [begin, end] : {std::pair(1, 6), {8, 12}})
    hand.op(hand.device(OpKind::kernel, "old", 0, 0, 0, begin, end)).placed = true;
  hand.device(OpKind::kernel, "new", 0, 0, 2, 13, 20, WaitReason::stream_order, 1);
  EXPECT_EQ(described(hand.finish()), (Lines{"0-1 idle latency 0", "1-6 compute work 0", "6-8 idle latency 1",
                                             "8-12 compute work 1", "12-13 host latency 2", "13-20 compute work 2"}));
}

TEST(CriticalPath, GoesThroughABlockingCallToTheWorkItWaitedFor) {
  HandmadeRun hand;
  hand.device(OpKind::kernel, "gemm", 0, 0, 1, 2, 10);
  const OpId sync = hand.host(OpKind::synchronize, "cudaStreamSynchronize", 1, 12);
  hand.waited(sync, WaitReason::synchronize, 0);
  hand.host(OpKind::mark, "end", 15, 15);
  EXPECT_EQ(described(hand.finish()), (Lines{"0-1 host call 0", "1-2 host latency 0", "2-10 compute work 0",
                                             "10-12 host latency 1", "12-15 host gap 2"}));
}

TEST(CriticalPath, CutsTheAwaitedWorkWhereTheCallReturnedEarly) {
  HandmadeRun hand;
  const OpId copy = hand.device(OpKind::copy, "pageable", 1, 0, 7, 1, 9);
  hand.op(copy).wait_for = WaitFor::own_op;
  hand.waited(copy, WaitReason::synchronize, copy);
  hand.host(OpKind::host_work, "after", 8, 20);
  EXPECT_EQ(described(hand.finish()),
            (Lines{"0-1 host call 0", "1-7 copy work 0", "7-8 host gap 1", "8-20 host call 1"}));
}

TEST(CriticalPath, GoesFromAFullLaunchQueueToTheStartThatFreedIt) {
  HandmadeRun hand;
  hand.device(OpKind::kernel, "a", 0, 0, 1, 1, 5);                                              // 0
  const OpId b = hand.device(OpKind::kernel, "b", 0, 1, 2, 5, 8, WaitReason::stream_order, 0);  // 1
  const OpId c = hand.device(OpKind::kernel, "c", 1, 2, 6, 7, 9);                               // 2
  hand.waited(c, WaitReason::launch_queue, b);
  EXPECT_EQ(described(hand.finish()), (Lines{"0-1 host call 0", "1-5 compute work 0", "5-6 host call 2",
                                             "6-7 host latency 2", "7-9 compute work 2"}));
}

TEST(CriticalPath, ChargesAllocationsThatWaitToTheAllocatorAndMissingDataToFaults) {
  HandmadeRun hand;
  const OpId alloc = hand.host(OpKind::alloc, "alloc", 1, 4);
  hand.run.trace.edit().storages.resize(1);
  hand.op(alloc).target = 0;
  hand.waited(alloc, WaitReason::memory, kNoOp);
  hand.device(OpKind::kernel, "a", 0, 4, 5, 6, 8);                                   // 1
  hand.device(OpKind::kernel, "b", 0, 5, 6, 11, 12, WaitReason::page_fault, kNoOp);  // 2
  EXPECT_EQ(described(hand.finish()),
            (Lines{"0-1 host gap 0", "1-4 allocator wait 0", "4-5 host call 1", "5-6 host latency 1",
                   "6-8 compute work 1", "8-11 fault wait 2", "11-12 compute work 2"}));
}

TEST(CriticalPath, OfAFaultAfterALateLaunchGoesOnThroughThatLaunch) {
  HandmadeRun hand;
  hand.device(OpKind::kernel, "a", 0, 0, 1, 1, 2);                                  // 0
  hand.device(OpKind::kernel, "b", 0, 4, 5, 9, 10, WaitReason::page_fault, kNoOp);  // 1
  EXPECT_EQ(described(hand.finish()),
            (Lines{"0-1 host call 0", "1-4 host gap 1", "4-5 host call 1", "5-9 fault wait 1", "9-10 compute work 1"}));
}

TEST(CriticalPath, FindsWhatHostWorkWaitedFor) {
  HandmadeRun hand;
  hand.device(OpKind::copy, "d2h", 1, 0, 1, 1, 6);
  const OpId adam = hand.host(OpKind::host_work, "cpu adam", 1, 16);
  hand.op(adam).wait_for = WaitFor::stream;
  hand.op(adam).stream = 1;
  hand.op(adam).host_cost = {};
  hand.op(adam).duration = microseconds(10);
  EXPECT_EQ(described(hand.finish()), (Lines{"0-1 host call 0", "1-6 copy work 0", "6-16 host call 1"}));
}

TEST(CriticalPath, ChangesThreadsAtAHandOver) {
  HandmadeRun hand;
  hand.run.trace.edit().threads.push_back({"autograd"});
  const OpId mark = hand.host(OpKind::mark, "backward", 3, 4);
  const OpId hand_over = hand.host(OpKind::hand_over, "start", 6, 6);
  hand.op(hand_over).thread = 1;
  hand.op(hand_over).target = mark;
  hand.record(hand_over).host_reason = WaitReason::hand_over;
  hand.record(hand_over).host_cause = mark;
  hand.device(OpKind::kernel, "gemm", 0, 6, 7, 7, 9);
  EXPECT_EQ(described(hand.finish()),
            (Lines{"0-3 host gap 0", "3-4 host call 0", "4-6 host gap 1", "6-7 host call 2", "7-9 compute work 2"}));
}

TEST(CriticalPath, CallsTheTimeBeforeStateOfEarlierWindowsIdle) {
  HandmadeRun hand;
  const OpId old = hand.device(OpKind::kernel, "before the window", 0, 0, 0, 3, 5);
  hand.op(old).placed = true;
  EXPECT_EQ(described(hand.finish()), (Lines{"0-3 idle latency 0", "3-5 compute work 0"}));
}

TEST(CriticalPath, EndsEvenIfCausesFormACircle) {
  HandmadeRun hand;
  hand.device(OpKind::kernel, "a", 0, 0, 0, 5, 5, WaitReason::event, 1);
  hand.device(OpKind::kernel, "b", 1, 0, 0, 5, 5, WaitReason::event, 0);
  EXPECT_EQ(described(hand.finish()), (Lines{"0-5 idle wait ?"}));
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
