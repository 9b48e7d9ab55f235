// Does a profile say when things are used, when they rest, and how large their blocks are? By hand, on kernels of 1 us.
#include "policies/profile/step_profile.h"

#include <gtest/gtest.h>

#include "tests/support/step_program.h"
#include "tests/support/test_machine.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

struct SmallStep {
  StorageId weight = 0, a = 0, b = 0;
  OpId first = 0, f = 0, g = 0, idle = 0, back_b = 0, back_a = 0, update = 0;
  Trace trace;
  SmallStep() {
    StepProgram p;
    weight = p.preexisting(1000, StorageKind::parameter, "weight");
    first = p.op("first", {}, {});
    a = p.make(100, "a");
    f = p.op("f", {weight}, {a});
    b = p.make(513, "b");
    g = p.op("g", {a}, {b});
    idle = p.op("idle", {}, {});
    p.backward();
    back_b = p.op("back_b", {b}, {});
    p.drop(b);
    back_a = p.op("back_a", {a}, {});
    p.drop(a);
    p.optimizer();
    update = p.op("update", {weight}, {weight});
    trace = std::move(p).finish();
  }
};

TEST(StepProfile, KnowsWhenOpsRun) {
  const SmallStep step;
  const Machine machine = test_machine();
  const StepProfile profile(step.trace, machine);
  EXPECT_EQ(profile.start(step.f), microseconds(1));
  EXPECT_EQ(profile.end(step.back_a), microseconds(6));
  EXPECT_EQ(profile.step_time(), microseconds(7));
  EXPECT_EQ(profile.op_at(microseconds(1)), step.f);
  EXPECT_EQ(profile.op_at(microseconds(1) + Time(1)), step.g);
  EXPECT_EQ(profile.op_at(microseconds(7)), step.trace.ops.size());
  EXPECT_EQ(profile.op_running_at(microseconds(2) - Time(1)), step.f);
  EXPECT_EQ(profile.op_running_at(microseconds(2)), step.g);
}

TEST(StepProfile, BlocksAreRoundedAsTheAllocatorDoes) {
  const SmallStep step;
  const Machine machine = test_machine();
  const StepProfile profile(step.trace, machine);
  EXPECT_EQ(profile.held(step.weight), 1024);
  EXPECT_EQ(profile.held(step.a), 512);
  EXPECT_EQ(profile.held(step.b), 1024);
}

TEST(StepProfile, GapsLieBetweenUses) {
  const SmallStep step;
  const Machine machine = test_machine();
  const StepProfile profile(step.trace, machine);
  ASSERT_EQ(profile.gaps(step.a).size(), 1u);  // none between f and g, which follow each other
  const Gap& a = profile.gaps(step.a).front();
  EXPECT_EQ(a.after, step.g);
  EXPECT_EQ(a.before, step.back_a);
  EXPECT_EQ(a.touch, 1u);
  EXPECT_EQ(a.begin, microseconds(3));
  EXPECT_EQ(a.end, microseconds(5));
  EXPECT_TRUE(a.needs_content);
  EXPECT_FALSE(a.wraps);
  ASSERT_EQ(profile.gaps(step.b).size(), 1u);
  EXPECT_EQ(profile.gaps(step.b).front().length(), microseconds(1));
}

TEST(StepProfile, WhatOutlivesTheStepRestsAcrossItsBoundary) {
  const SmallStep step;
  const Machine machine = test_machine();
  const StepProfile profile(step.trace, machine);
  ASSERT_EQ(profile.gaps(step.weight).size(), 2u);
  const Gap& wrap = profile.gaps(step.weight).back();
  EXPECT_TRUE(wrap.wraps);
  EXPECT_EQ(wrap.after, step.update);
  EXPECT_EQ(wrap.before, step.f);
  EXPECT_EQ(wrap.begin, microseconds(7));
  EXPECT_EQ(wrap.end, microseconds(8)) << "the next step's f begins 1 us after its start";
}

TEST(StepProfile, TimeOfProducersIsThatOfAllWriters) {
  StepProgram p;
  const StorageId a = p.make(100, "a");
  p.op("f", {}, {a});
  p.op("relu_", {a}, {a});
  p.drop(a);
  const Trace trace = std::move(p).finish();
  const Machine machine = test_machine();
  EXPECT_EQ(StepProfile(trace, machine).producer_time(a), microseconds(2));
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
