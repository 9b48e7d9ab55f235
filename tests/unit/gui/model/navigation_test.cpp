// Do steps along lanes and dependencies lead where the whole run says?
#include "gui/model/navigation.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/gpt_trace.h"
#include "tests/support/handmade_run.h"
#include "tests/support/open_run_of.h"
#include "tests/support/test_machine.h"

namespace memwall::gui {
namespace MEMWALL_TEST_FILE {

std::shared_ptr<const Run> long_run() {
  GptShape shape;
  shape.layers = 8;
  shape.steps = 45;
  shape.launch_cost = microseconds(1);
  return std::make_shared<const memwall::Run>(simulate_and_record(gpt_step(shape), test_machine(), {}));
}

// Ops with work on a stream, in order of begin.
std::vector<OpId> work_of(const Run& run, std::uint16_t stream) {
  std::vector<OpId> ops;
  for (OpId id = 0; id < run.trace->ops.size(); ++id)
    if (run.result.records[id].start != kNever && run.trace->ops[id].stream == stream) ops.push_back(id);
  std::stable_sort(ops.begin(), ops.end(),
                   [&](OpId a, OpId b) { return run.result.records[a].start < run.result.records[b].start; });
  return ops;
}

TEST(Navigation, NextInLaneWalksAStreamFromEndToEndAndBack) {
  const auto run = long_run();
  const OpenRun open = open_run_of(run);
  ASSERT_GT(run->trace->ops.size(), std::size_t{kSpanBlock}) << "the walk must cross blocks";
  const std::vector<OpId> ops = work_of(*run, 0);
  for (std::size_t i = 0; i + 1 < ops.size(); ++i) {
    ASSERT_EQ(next_in_lane(open, {0, ops[i], false}, Direction::forward), (OpRef{0, ops[i + 1], false}));
    ASSERT_EQ(next_in_lane(open, {0, ops[i + 1], false}, Direction::back), (OpRef{0, ops[i], false}));
  }
  EXPECT_EQ(next_in_lane(open, {0, ops.front(), false}, Direction::back), std::nullopt);
  EXPECT_EQ(next_in_lane(open, {0, ops.back(), false}, Direction::forward), std::nullopt);
}

TEST(Navigation, AnOpHasALaneForEachPartThatItHas) {
  const auto run = long_run();
  const OpenRun open = open_run_of(run);
  for (OpId id = 0; id < 300; ++id) {
    const OpRecord& record = run->result.records[id];
    const auto work = lane_of(open, {0, id, false});
    EXPECT_EQ(work.has_value(), record.start != kNever);
    if (work) {
      EXPECT_EQ(open.outline().lanes[*work].index, run->trace->ops[id].stream);
    }
    const auto call = lane_of(open, {0, id, true});
    ASSERT_TRUE(call);
    EXPECT_EQ(open.outline().lanes[*call].index, run->trace->ops[id].thread);
    EXPECT_EQ(time_of(open, {0, id, true}), (TimeRange{record.host_start, record.host_end}));
  }
  EXPECT_EQ(lane_of(open, {0, kNoOp, true}), std::nullopt);
  EXPECT_EQ(time_of(open, {0, kNoOp, true}), TimeRange{});
}

// A launch, its kernel, a kernel that waits for it by an event, and a synchronize at the end.
TEST(Navigation, DependenciesLeadToCausesAndToTheFirstThatFollows) {
  HandmadeRun hand;
  const OpId first = hand.device(OpKind::kernel, "first", 0, 0, 2, 3, 10);
  const OpId second = hand.device(OpKind::kernel, "second", 2, 2, 4, 11, 20, WaitReason::event, first);
  const OpId third = hand.device(OpKind::kernel, "third", 0, 4, 6, 10, 15, WaitReason::stream_order, first);
  const OpId sync = hand.host(OpKind::synchronize, "sync", 6, 21);
  hand.waited(sync, WaitReason::synchronize, second);
  const OpenRun open = open_run_of(std::make_shared<const memwall::Run>(hand.finish()));
  const auto back = [&](OpId op, bool call) { return along_dependency(open, {0, op, call}, Direction::back); };
  const auto forward = [&](OpId op, bool call) { return along_dependency(open, {0, op, call}, Direction::forward); };
  EXPECT_EQ(back(first, false), (OpRef{0, first, true})) << "its launch";
  EXPECT_EQ(back(second, false), (OpRef{0, first, false}));
  EXPECT_EQ(back(third, false), (OpRef{0, first, false}));
  EXPECT_EQ(back(second, true), (OpRef{0, first, true})) << "the call before it";
  EXPECT_EQ(back(sync, true), (OpRef{0, second, false})) << "what let it return";
  EXPECT_EQ(forward(first, true), (OpRef{0, first, false})) << "what it launched";
  EXPECT_EQ(forward(first, false), (OpRef{0, third, false})) << "began before the other one";
  EXPECT_EQ(forward(second, false), (OpRef{0, sync, true}));
  EXPECT_EQ(forward(third, false), std::nullopt);
  EXPECT_EQ(back(kNoOp, false), std::nullopt);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall::gui
