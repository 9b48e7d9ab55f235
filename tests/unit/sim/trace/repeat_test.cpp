// Does a repeated step find what the round before left, and cost the same each time?
#include "sim/trace/repeat.h"

#include <gtest/gtest.h>

#include "sim/trace/scale.h"
#include "sim/engine/simulation.h"
#include "sim/trace/trace_builder.h"
#include "sim/trace/trace_check.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/test_machine.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

TEST(Repeat, OnceIsTheSame) {
  const Trace step = gpt_step({});
  EXPECT_EQ(repeated(step, 1).ops.size(), step.ops.size());
}

TEST(Repeat, ThreeRoundsAreSoundAndTakeThreeTimesAsLong) {
  const Trace step = gpt_step({});
  const Trace three = repeated(step, 3);
  EXPECT_EQ(check(three), std::vector<std::string>{});
  EXPECT_EQ(three.ops.size(), 3 * step.ops.size());
  EXPECT_EQ(three.steps.size(), 3 * step.steps.size());
  const Machine machine = test_machine();
  const auto once = simulate(step, machine, {});
  const auto thrice = simulate(three, machine, {});
  // Rounds follow without a pause on the host; the device may overlap a boundary, never by more than a step.
  EXPECT_GE(thrice.end, 2 * once.end);
  EXPECT_LE(thrice.end, 3 * once.end);
  const int hbm = machine.tier("hbm");
  EXPECT_EQ(thrice.tiers[hbm].peak_usage.requested, once.tiers[hbm].peak_usage.requested)
      << "a leak from round to round";
}

TEST(Repeat, WhatOneRoundLeavesTheNextFrees) {
  TraceBuilder builder;
  builder.trace().knowledge.allocations = true;
  builder.add_thread("main");
  const StorageId old_gradient = builder.add_storage(64, StorageKind::gradient, "hbm", "old", true);
  const StorageId new_gradient = builder.add_storage(64, StorageKind::gradient, "hbm", "new");
  builder.free(old_gradient, 0);
  builder.alloc(new_gradient, 0);
  const Trace twice = repeated(builder.trace(), 2);
  EXPECT_EQ(check(twice), std::vector<std::string>{});
  ASSERT_EQ(twice.ops.size(), 4u);
  EXPECT_EQ(twice.ops[2].kind, OpKind::free);
  EXPECT_EQ(twice.ops[2].target, new_gradient);
}

TEST(Repeat, AFreedStorageWithoutSuccessorIsKeptAndNoted) {
  TraceBuilder builder;
  builder.trace().knowledge.allocations = true;
  builder.add_thread("main");
  builder.free(builder.add_storage(64, StorageKind::unknown, "hbm", "once", true), 0);
  const Trace twice = repeated(builder.trace(), 2);
  EXPECT_EQ(check(twice), std::vector<std::string>{});
  EXPECT_EQ(twice.ops.size(), 1u);
  ASSERT_FALSE(twice.notes.empty());
  EXPECT_NE(twice.notes.back().find("without a successor"), std::string::npos);
}

TEST(Scale, KernelsCopiesAndHostScaleEachForItself) {
  Trace trace;
  trace.threads = {{"main"}};
  trace.streams = {{"s", 0, StreamRole::compute}};
  for (const OpKind kind : {OpKind::kernel, OpKind::collective, OpKind::copy, OpKind::host_work}) {
    Op op;
    op.kind = kind;
    op.duration = microseconds(10);
    op.host_gap = microseconds(4);
    op.host_cost = microseconds(2);
    trace.ops.push_back(op);
  }
  const Trace s = scaled(trace, {1.1, 3, 0.5});
  EXPECT_EQ(s.ops[0].duration, microseconds(11));
  EXPECT_EQ(s.ops[1].duration, microseconds(11));
  EXPECT_EQ(s.ops[2].duration, microseconds(30));
  EXPECT_EQ(s.ops[3].duration, microseconds(5));
  EXPECT_EQ(s.ops[0].host_gap, microseconds(2));
  EXPECT_EQ(s.ops[0].host_cost, microseconds(1));
}

TEST(Repeat, ReferencesEndInTheirOwnRound) {
  Trace step = gpt_step({});
  StorageId made = 0;
  while (step.storages[made].preexisting) ++made;
  step.storages[made].last_referenced = 7;
  const Trace twice = repeated(step, 2);
  EXPECT_EQ(twice.storages[made].last_referenced, 7u);
  std::size_t second = 0;
  for (StorageId s = static_cast<StorageId>(step.storages.size()); s < twice.storages.size(); ++s)
    second += twice.storages[s].last_referenced == step.ops.size() + 7 ? 1 : 0;
  EXPECT_EQ(second, 1u);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
