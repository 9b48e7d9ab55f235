// Has every instant one class, by the stated priority, and do the classes add up? Times in microseconds.
#include "traces/run/analysis/accounting.h"

#include "sim/engine/simulation.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/handmade_run.h"
#include "tests/support/test_machine.h"
#include "traces/run/run_recorder.h"
#include "traces/run/analysis/waits.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

ClassTimes of(std::initializer_list<std::pair<TimeClass, double>> list) {
  ClassTimes times;
  for (const auto& [c, us] : list) times[c] = from_microseconds(us);
  return times;
}

void expect_times(const ClassTimes& found, std::initializer_list<std::pair<TimeClass, double>> list) {
  const ClassTimes expected = of(list);
  for (int c = 0; c < kTimeClasses; ++c) {
    const auto time_class = static_cast<TimeClass>(c);
    EXPECT_EQ(found[time_class].count(), expected[time_class].count()) << to_string(time_class);
  }
}

TEST(Accounting, CountsLatenciesAndCallsAsHost) {
  HandmadeRun hand;
  hand.device(OpKind::kernel, "gemm", 0, 2, 5, 6, 10);
  expect_times(account(hand.finish()).total, {{TimeClass::host, 6}, {TimeClass::compute, 4}});
}

TEST(Accounting, PutsComputeBeforeRecomputeBeforeTheRest) {
  HandmadeRun hand;
  hand.device(OpKind::copy, "h2d", 1, 0, 1, 1, 20);                         // 0
  hand.device(OpKind::kernel, "forward", 0, 1, 2, 4, 9);                    // 1
  const OpId again = hand.device(OpKind::kernel, "again", 2, 2, 3, 7, 12);  // 2
  hand.op(again).phase = Phase::recompute;
  hand.device(OpKind::kernel, "last", 0, 3, 4, 20, 22, WaitReason::event, 0);  // 3
  // 0-1 call, 1-4 copy, 4-9 compute (9-12 recompute alone), 12-20 copy, 20-22 compute.
  expect_times(account(hand.finish()).total,
               {{TimeClass::host, 1}, {TimeClass::copy, 11}, {TimeClass::compute, 7}, {TimeClass::recompute, 3}});
}

// Work of before the capture is on no path: what runs is pending all the same.
TEST(Accounting, WhatRunsIsNotIdle) {
  HandmadeRun hand;
  const OpId reduce = hand.device(OpKind::collective, "all-reduce", 2, 0, 0, 1, 8);
  const OpId copy = hand.device(OpKind::copy, "h2d", 1, 0, 0, 6, 10);
  const OpId late = hand.device(OpKind::kernel, "late", 0, 0, 0, 12, 20);
  for (const OpId id : {reduce, copy, late}) hand.op(id).placed = true;
  memwall::Run run = hand.finish();
  for (OpRecord& record : run.result.records) record.host_start = record.host_end = kNever;
  // Nothing to 1, the collective to 8, the copy to 10, nothing to 12, the kernel.
  expect_times(account(run).total,
               {{TimeClass::idle, 3}, {TimeClass::collective, 7}, {TimeClass::copy, 2}, {TimeClass::compute, 8}});
}

TEST(Accounting, HidesWhatACopyDoesBehindKernels) {
  HandmadeRun hand;
  hand.device(OpKind::copy, "h2d", 1, 0, 1, 1, 9);
  hand.device(OpKind::kernel, "gemm", 0, 1, 2, 1, 10);
  expect_times(account(hand.finish()).total, {{TimeClass::host, 1}, {TimeClass::compute, 9}});
}

TEST(Accounting, CutsClassesAtStepBoundaries) {
  HandmadeRun hand;
  const OpId first = hand.host(OpKind::mark, "step 1", 1, 1);
  hand.device(OpKind::kernel, "a", 0, 1, 2, 3, 8);
  const OpId second = hand.host(OpKind::mark, "step 2", 5, 5);
  hand.device(OpKind::kernel, "b", 0, 5, 6, 9, 11, WaitReason::stream_order, 1);
  hand.step("one", first, second);
  hand.step("two", second, 4);
  const TimeAccounting found = account(hand.finish());
  ASSERT_EQ(found.steps.size(), 2u);
  EXPECT_EQ(found.steps[0].window.name, "one");
  expect_times(found.steps[0].times, {{TimeClass::host, 2}, {TimeClass::compute, 2}});  // 1-5
  expect_times(found.steps[1].times, {{TimeClass::compute, 5}, {TimeClass::host, 1}});  // 5-11
  expect_times(found.total, {{TimeClass::host, 4}, {TimeClass::compute, 7}});           // 0-11
}

TEST(Accounting, AddsUpForASimulatedTrainingStep) {
  GptShape shape;
  shape.steps = 3;
  shape.host_gap = nanoseconds(17);
  shape.launch_cost = nanoseconds(31);
  shape.allocator_cost = nanoseconds(7);
  const memwall::Run run = simulate_and_record(gpt_step(shape), test_machine(), {});
  const TimeAccounting found = account(run);
  ASSERT_EQ(found.steps.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(found.steps[i].times.total(), run.result.steps[i].step_time);
    EXPECT_GT(found.steps[i].times[TimeClass::compute].count(), 0);
    EXPECT_GT(found.steps[i].times[TimeClass::allocator].count(), 0);
    EXPECT_EQ(found.steps[i].times[TimeClass::idle].count(), 0);
  }
  EXPECT_EQ(found.total.total(), run.result.end);
}

TEST(Accounting, OfOneStreamCountsEveryKernelOnce) {
  const memwall::Run run = simulate_and_record(gpt_step({}), test_machine(), {});
  Duration kernels{};
  for (std::size_t i = 0; i < run.trace->ops.size(); ++i)
    if (run.result.records[i].start != kNever) kernels += run.result.records[i].end - run.result.records[i].start;
  EXPECT_EQ(account(run).total[TimeClass::compute], kernels);
}

TEST(Waits, AreTimeBeyondTheOwnCost) {
  HandmadeRun hand;
  hand.device(OpKind::kernel, "a", 0, 0, 1, 1, 10);
  hand.device(OpKind::kernel, "b", 0, 1, 2, 10, 12, WaitReason::stream_order, 0);
  const OpId sync = hand.host(OpKind::synchronize, "sync", 2, 13);
  hand.op(sync).host_cost = microseconds(1);
  hand.waited(sync, WaitReason::synchronize, 1);
  const Waits waits = total_waits(hand.finish());
  const auto host = [&](WaitReason r) { return waits.host[static_cast<std::size_t>(r)]; };
  const auto device = [&](WaitReason r) { return waits.device[static_cast<std::size_t>(r)]; };
  EXPECT_EQ(host(WaitReason::synchronize).time, microseconds(10));
  EXPECT_EQ(host(WaitReason::synchronize).count, 1u);
  EXPECT_EQ(device(WaitReason::stream_order).time, microseconds(8));
  EXPECT_EQ(device(WaitReason::launch).time, Duration{});
  EXPECT_EQ(device(WaitReason::launch).count, 1u);
}

TEST(OriginShares, AreSharesOfDeviceTime) {
  HandmadeRun hand;
  hand.device(OpKind::kernel, "a", 0, 0, 1, 1, 7);
  const OpId b = hand.device(OpKind::kernel, "b", 0, 1, 2, 7, 10, WaitReason::stream_order, 0);
  hand.op(b).origin = Origin::modelled;
  const OpId c = hand.device(OpKind::copy, "c", 1, 2, 3, 3, 4);
  hand.op(c).origin = Origin::transferred;
  const OriginShares shares = origin_shares(hand.finish());
  EXPECT_DOUBLE_EQ(shares.share(shares.measured), 0.6);
  EXPECT_DOUBLE_EQ(shares.share(shares.modelled), 0.3);
  EXPECT_DOUBLE_EQ(shares.share(shares.transferred), 0.1);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
