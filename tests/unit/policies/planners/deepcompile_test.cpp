// Does DeepCompile move what the headroom has no room for, states before activations, and nothing else? By hand: ops of
// 2 ms; 20 MB are 2 ms on the link.
#include <gtest/gtest.h>

#include "policies/plan/plan_check.h"
#include "policies/planners/planner.h"
#include "policies/profile/planned_memory.h"
#include "tests/support/rewrite_checks.h"
#include "tests/support/sample.h"
#include "tests/support/step_program.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

constexpr Bytes kChunk = 20'000'000;

Op two_ms() {
  Op op;
  op.duration = microseconds(2'000);
  return op;
}

// Two states of 20 MB, which the optimizer updates; three activations of 20 MB; 40 MB beside them as backward begins:
// 140 MB at the peak.
struct TwoStates {
  TwoStates() {
    StepProgram p;
    const StorageId w = p.preexisting(512, StorageKind::parameter, "w");
    states = {p.preexisting(kChunk, StorageKind::optimizer_state, "m"),
              p.preexisting(kChunk, StorageKind::optimizer_state, "v")};
    for (int i = 0; i < 3; ++i) {
      activations.push_back(p.make(kChunk, "a"));
      first = std::min(first, p.op("f", {w}, {activations.back()}, two_ms()));
    }
    p.backward();
    const StorageId beside = p.make(2 * kChunk, "beside");
    peak = p.op("loss_backward", {}, {beside}, two_ms());
    p.drop(beside);
    for (std::size_t i = 3; i-- > 0;) {
      p.op("f_backward", {activations[i]}, {}, two_ms());
      p.drop(activations[i]);
    }
    p.optimizer();
    update = p.op("update", {w, states[0], states[1]}, {w, states[0], states[1]}, two_ms());
    trace = std::move(p).finish();
  }
  std::vector<StorageId> states, activations;
  OpId first = kNoOp, peak = kNoOp, update = kNoOp;
  Trace trace;
};

struct DeepCompilePlan {
  DeepCompilePlan(const Trace& step, Bytes budget, const std::string& policy = "deepcompile:min_bytes=0")
      : machine(test_machine()), profile(step, machine) {
    plan = planner_named(policy)(profile, {budget}, machine, *test_pricer(machine)).best;
    EXPECT_EQ(check_plan(plan, step, profile.flow()), std::vector<std::string>{});
  }
  std::vector<StorageId> moved() const {
    std::vector<StorageId> all;
    for (const StorageDecision& d : plan.storages) all.push_back(d.storage);
    return all;
  }
  Machine machine;
  StepProfile profile;
  MemoryPlan plan;
};

TEST(DeepCompile, DeclinesWhereNothingIsNeeded) {
  const TwoStates step;
  EXPECT_EQ(DeepCompilePlan(step.trace, 141'000'000).plan.storages.size(), 0u);
  EXPECT_TRUE(has_note(rewritten(step.trace, "deepcompile:min_bytes=0,budget=1GB"), "nothing leaves the device"));
}

// Without all five 40 MB are there at the peak: 20 MB of headroom have room for the last activation, 40 for one more.
TEST(DeepCompile, TheHeadroomSaysWhatStays) {
  const TwoStates step;
  const std::vector<StorageId>&s = step.states, &a = step.activations;
  EXPECT_EQ(DeepCompilePlan(step.trace, 125'000'000).moved(), (std::vector<StorageId>{s[0]}));
  EXPECT_EQ(DeepCompilePlan(step.trace, 105'000'000).moved(), (std::vector<StorageId>{s[0], s[1]}));
  EXPECT_EQ(DeepCompilePlan(step.trace, 85'000'000).moved(), (std::vector<StorageId>{s[0], s[1], a[0]}));
  EXPECT_EQ(DeepCompilePlan(step.trace, 65'000'000).moved(), (std::vector<StorageId>{s[0], s[1], a[0], a[1]}));
}

TEST(DeepCompile, WhatCannotBeKeptToIsNoReasonToMoveMore) {
  const TwoStates step;
  EXPECT_EQ(DeepCompilePlan(step.trace, 30'000'000).moved().size(), 4u)
      << "behind the first op are its result and both states: one activation may stay beside the 40 MB";
  StepProgram p;
  const StorageId m = p.preexisting(kChunk, StorageKind::optimizer_state, "m");
  p.op("f", {}, {}, two_ms());
  p.op("f", {}, {}, two_ms());
  p.backward();
  p.op("f_backward", {}, {}, two_ms());
  p.optimizer();
  p.op("update", {m}, {m}, two_ms());
  EXPECT_EQ(DeepCompilePlan(std::move(p).finish(), 10'000'000).moved().size(), 0u) << "the update needs it";
}

TEST(DeepCompile, OneKindAloneMayLeave) {
  const TwoStates step;
  EXPECT_EQ(DeepCompilePlan(step.trace, 85'000'000, "deepcompile:min_bytes=0,what=optimizer").moved(), step.states);
  EXPECT_EQ(DeepCompilePlan(step.trace, 85'000'000, "deepcompile:min_bytes=0,what=activations").moved(),
            step.activations);
}

TEST(DeepCompile, StatesLeaveFromTheStartAndComeBackBeforeTheyAreUsed) {
  const TwoStates step;
  const DeepCompilePlan planned(step.trace, 105'000'000);
  for (const StorageDecision& d : planned.plan.storages) {
    EXPECT_EQ(d.home, StorageDecision::kDevice);
    EXPECT_EQ(d.copies[0].at, (PlanPoint{step.first, true, 0})) << "of forward, behind its first op";
    EXPECT_GT(d.drops[0].at.op, step.first);
    EXPECT_LE(d.drops[0].at.op, step.peak);
    EXPECT_GT(d.fetches[0].at.op, step.peak);
    EXPECT_LT(d.fetches[0].at.op, step.update - 1) << "earlier than they must";
  }
  EXPECT_LE(planned_peak(planned.profile, planned.plan), 105'000'000);
}

TEST(DeepCompile, AnActivationIsCopiedBehindItsWriter) {
  const TwoStates step;
  const DeepCompilePlan planned(step.trace, 85'000'000);
  const StorageDecision& d = planned.plan.storages.back();
  EXPECT_EQ(d.storage, step.activations[0]);
  EXPECT_EQ(d.copies[0].at, (PlanPoint{step.first, true, 0}));
  EXPECT_LE(planned_peak(planned.profile, planned.plan), 85'000'000);
}

TEST(DeepCompile, SaysWhatIsMissingWhereAllHasLeft) {
  const TwoStates step;
  EXPECT_TRUE(
      has_note(rewritten(step.trace, "deepcompile:min_bytes=0,budget=30MB"), "no plan was found that keeps to it"));
  Machine machine = test_machine();
  machine.tiers[static_cast<std::size_t>(machine.tier("host"))].name = "elsewhere";
  const StepProfile profile(step.trace, machine);
  EXPECT_THROW(planner_named("deepcompile")(profile, {MiB(1)}, machine, *test_pricer(machine)), UsageError);
}

TEST(DeepCompile, KeepsToTheBudgetOfAWholeStep) {
  const Trace step = sample_gpt_124m();
  const Bytes all = PlannedMemory(StepProfile(step, test_machine())).peak();
  std::size_t before = 0;
  for (const int percent : {90, 60, 40}) {
    const Bytes budget = all * percent / 100;
    const DeepCompilePlan planned(step, budget, "deepcompile");
    EXPECT_LE(planned_peak(planned.profile, planned.plan), budget) << percent;
    EXPECT_GT(planned.plan.storages.size(), before) << percent << ": less room, more leaves";
    before = planned.plan.storages.size();
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
