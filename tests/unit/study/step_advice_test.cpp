// Is the recommended plan the best of those tried, and does what is said beside it (the smallest budget, the regret,
// what was measured) follow from simulations that can be made again?
#include "study/step_advice.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "sim/error.h"
#include "sim/trace/ranks.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/test_machine.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

class StepAdviceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Trace step = gpt_step({.layers = 2, .hidden = 128, .sequence = 128, .batch = 8});
    step.machine = "gpu";
    step.samples_per_step = 8;
    study_.add_step("step", step);
    study_.add_machine("gpu", test_machine());
    request_.scenario.step = {"step"};
    request_.scenario.machine = "gpu";
    needed_ = study_.run(request_.scenario, {.record = false}).run.result.tiers[0].peak_reserved;
  }

  AdviceRequest within(double share) const {
    AdviceRequest request = request_;
    request.budget = std::to_string(static_cast<Bytes>(share * static_cast<double>(needed_)));
    return request;
  }

  Study study_;
  AdviceRequest request_;
  Bytes needed_ = 0;
};

TEST_F(StepAdviceTest, AStepThatFitsIsLeftAsItIs) {
  const StepAdvice advice = advise(study_, request_);
  EXPECT_TRUE(advice.untouched.fits);
  EXPECT_TRUE(advice.plans.front().policies.empty());
  EXPECT_EQ(advice.plans.front().step_time, advice.unlimited);
  ASSERT_FALSE(advice.full_checkpointing.policies.empty());
  EXPECT_GT(advice.full_checkpointing.step_time, advice.unlimited);
  EXPECT_LT(advice.smallest.bytes, advice.needed);
}

TEST_F(StepAdviceTest, OfAStepOfManyOpsSaysThatNoSmallestBudgetWasLookedFor) {
  AdviceRequest request = within(0.8);
  EXPECT_FALSE(advise(study_, request).is_too_long);
  Trace longer = gpt_step({.layers = 2, .hidden = 128, .sequence = 128, .batch = 8});
  longer.machine = "gpu";
  Op mark;
  mark.kind = OpKind::mark;
  longer.ops.resize(50'001, mark);
  study_.add_step("longer", longer);
  request.scenario.step = {"longer"};
  const StepAdvice advice = advise(study_, request);
  EXPECT_TRUE(advice.is_too_long);
  EXPECT_EQ(advice.smallest.bytes, 0);
}

TEST_F(StepAdviceTest, ABudgetIsForOneRank) {
  const Trace step = gpt_step({.layers = 1, .hidden = 64, .sequence = 32});
  study_.add_step("two ranks", joined_ranks({{.number = 0, .trace = step}, {.number = 1, .trace = step}}));
  request_.scenario.step = {"two ranks"};
  try {
    advise(study_, request_);
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("it holds 2 ranks; expected a step of one rank"), std::string::npos)
        << error.what();
  }
}

TEST_F(StepAdviceTest, ThePlanIsTheFastestThatFitsAndNothingIsFasterThanTheBound) {
  const StepAdvice advice = advise(study_, within(0.7));
  EXPECT_FALSE(advice.untouched.fits);
  EXPECT_GT(advice.untouched.missing, 0);
  ASSERT_TRUE(advice.plans.front().fits);
  for (const AdvisedPlan& plan : advice.plans) {
    EXPECT_TRUE(!plan.fits || plan.step_time >= advice.plans.front().step_time);
    EXPECT_TRUE(!plan.fits || to_seconds(plan.step_time) >= advice.certificate.joint_seconds);
    EXPECT_FALSE(plan.why.empty());
  }
}

// What is there before the step lies beside the budget: reserved sizes have it, and it is told.
TEST_F(StepAdviceTest, ABudgetIsForTheStepsStorages) {
  const AdviceRequest request = within(0.7);
  const StepAdvice alone = advise(study_, request);
  EXPECT_EQ(alone.beside, 0);
  Trace step = *study_.load(request_.scenario).trace;
  step.untracked_bytes = MiB(64);
  Study study;
  study.add_step("step", step);
  study.add_machine("gpu", test_machine());
  const StepAdvice advice = advise(study, request);
  EXPECT_EQ(advice.beside, MiB(64));
  EXPECT_EQ(advice.needed, alone.needed);
  const AdvisedPlan& best = advice.plans.front();
  ASSERT_TRUE(best.fits);
  EXPECT_EQ(best.step_time, alone.plans.front().step_time);
  EXPECT_EQ(best.peak_reserved, alone.plans.front().peak_reserved + MiB(64));
  EXPECT_LE(best.peak_reserved - advice.beside, advice.budget);
}

// Doing nothing is held against the budget, too, and not against the machine's own memory.
TEST_F(StepAdviceTest, ABudgetMayBeMoreThanTheMachinesGpuHas) {
  Machine small = test_machine();
  small.tiers[0].capacity = small.tiers[0].unavailable + needed_ / 2;
  study_.add_machine("small gpu", small);
  for (const double share : {0.7, 1.0}) {
    AdviceRequest request = within(share);
    const StepAdvice whole = advise(study_, request);
    request.scenario.machine = "small gpu";
    ASSERT_FALSE(study_.run(request.scenario, {.record = false}).run.result.fits);
    const StepAdvice advice = advise(study_, request);
    EXPECT_EQ(advice.device, needed_ / 2);
    EXPECT_EQ(advice.unlimited, whole.unlimited);
    EXPECT_EQ(advice.needed, whole.needed);
    EXPECT_EQ(advice.untouched.fits, share == 1.0);
    EXPECT_EQ(advice.untouched.missing, whole.untouched.missing);
    EXPECT_EQ(advice.plans.front().policies, whole.plans.front().policies);
    EXPECT_EQ(advice.plans.front().step_time, whole.plans.front().step_time);
  }
}

// `plan` found nothing better than Capuchin's plan, which stands beside it.
TEST(StepAdviceSentences, AgreeWithTheNumbersWhereThePlanIsAnothers) {
  Study study;
  const AdviceRequest request{
      .scenario = {.step = {MEMWALL_SOURCE "/traces/samples/captures/resnet50.mwc.gz"}, .machine = "a100-sxm-80gb"},
      .budget = "5.12GB",
      .smallest = false};
  const StepAdvice advice = advise(study, request);
  ASSERT_GE(advice.plans.size(), 2u);
  const AdvisedPlan &own = advice.plans[0], &same = advice.plans[1];
  ASSERT_EQ(own.made_by, "capuchin");
  EXPECT_TRUE(own.why.starts_with("the plan of capuchin, the best of those that plan tried; ")) << own.why;
  ASSERT_EQ(own.step_time, same.step_time);
  EXPECT_TRUE(same.why.ends_with("; as fast as the first, with the same copies and re-runs")) << same.why;
}

// They are not planned where what they have to wait for is known to be more than what is shown.
TEST_F(StepAdviceTest, MovesAloneAreShownWhereTheyAreAmongTheFastest) {
  for (const double share : {0.9, 0.7, 0.5}) {
    const AdviceRequest request = within(share);
    const StepAdvice advice = advise(study_, request);
    const std::string alone = "plan:recompute=0,budget=" + request.budget;
    const AdvisedPlan moves = simulated_plan(study_, advice.scenario, {alone}, advice.budget);
    const auto is_listed = std::ranges::any_of(advice.plans, [&](const AdvisedPlan& plan) {
      return !plan.policies.empty() && plan.policies.front().starts_with(alone);  // maybe its first plan
    });
    const AdvisedPlan& last = advice.plans.back();
    EXPECT_TRUE(is_listed || !moves.fits || (last.fits && last.step_time <= moves.step_time)) << share;
  }
}

TEST_F(StepAdviceTest, TheSmallestBudgetIsOneThatTheNamedPolicyKeepsTo) {
  for (const double share : {0.7, 0.08}) {
    const StepAdvice advice = advise(study_, within(share));
    EXPECT_EQ(advice.plans.front().fits, share > 0.5);
    ASSERT_GT(advice.smallest.bytes, 0);
    EXPECT_GE(advice.smallest.bytes, advice.certificate.least_budget);
    if (share < 0.5) {
      EXPECT_GT(advice.smallest.bytes, advice.budget);
    }
    ASSERT_FALSE(advice.smallest_policy.empty());
    const AdvisedPlan again = simulated_plan(study_, advice.scenario, {advice.smallest_policy}, advice.smallest.bytes);
    EXPECT_TRUE(again.fits) << advice.smallest_policy;
  }
}

TEST_F(StepAdviceTest, TheNumberOfThreadsChangesNothing) {
  AdviceRequest request = within(0.6);
  const StepAdvice one = advise(study_, request);
  request.jobs = 3;
  const StepAdvice three = advise(study_, request);
  ASSERT_EQ(one.plans.size(), three.plans.size());
  for (std::size_t i = 0; i < one.plans.size(); ++i) {
    EXPECT_EQ(one.plans[i].policies, three.plans[i].policies);
    EXPECT_EQ(one.plans[i].step_time, three.plans[i].step_time);
  }
  EXPECT_EQ(one.smallest.bytes, three.smallest.bytes);
  EXPECT_EQ(one.smallest.tries, three.smallest.tries);
}

TEST_F(StepAdviceTest, WhatIsNotAskedForIsNotDone) {
  AdviceRequest request = within(0.7);
  request.smallest = false;
  const StepAdvice advice = advise(study_, request);
  EXPECT_EQ(advice.smallest.bytes, 0);
  EXPECT_TRUE(advice.layouts.empty());
}

TEST_F(StepAdviceTest, MoreMemoryThanSimulatedLowersTheBudgetByAsMuch) {
  AdviceRequest request = request_;
  request.budget = "1GiB";
  Observation o;
  o.simulated = {"simulation", GiB(2), GiB(1), microseconds(10000), 1};
  o.measured = {"memory snapshot", GiB(2) + MiB(256), GiB(1), {}, 0};
  const AdviceRequest lower = corrected(study_, request, o);
  EXPECT_EQ(budget_bytes(study_, lower), MiB(768));
  EXPECT_TRUE(lower.scenario.scale.empty());
  o.measured.peak_reserved = GiB(1);
  EXPECT_EQ(corrected(study_, request, o).budget, "1GiB") << "less than simulated gives nothing away";
  o.measured.peak_reserved = GiB(3);
  EXPECT_THROW((void)corrected(study_, request, o), UsageError) << "nothing is left";
}

TEST_F(StepAdviceTest, AStepThatTookLongerIsSimulatedAsLong) {
  Observation o;
  o.simulated = {"simulation", 0, 0, mean_step(study_.run(request_.scenario, {.record = false}).run), 1};
  o.measured = {"Kineto capture", 0, 0, o.simulated.step_time * 5 / 4, 1};
  const AdviceRequest slower = corrected(study_, request_, o);
  ASSERT_EQ(slower.scenario.scale, std::vector<std::string>{"kernels=1.25,host=1.25"});
  const Duration step = mean_step(study_.run(slower.scenario, {.record = false}).run);
  EXPECT_NEAR(to_seconds(step), 1.25 * to_seconds(o.simulated.step_time), 1e-3 * to_seconds(step));
  o.measured.step_time = o.simulated.step_time;
  EXPECT_TRUE(corrected(study_, request_, o).scenario.scale.empty());
}

TEST(OwnPolicy, HoldsWhatTheRequestSays) {
  AdviceRequest request;
  EXPECT_EQ(own_policy(request, ""), "plan");
  EXPECT_EQ(own_policy(request, "8GiB", "search=0"), "plan:budget=8GiB,search=0");
  request.tiers = "host+nvme";
  request.settings = "robust=20%";
  EXPECT_EQ(own_policy(request, ""), "plan:tiers=host+nvme,robust=20%");
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
