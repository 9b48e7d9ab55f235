// Is the largest batch one that a plan keeps to the budget, and are no more sizes tried than are allowed?
#include "study/batch_advice.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "sim/error.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

AdviceRequest tiny_request() {
  AdviceRequest request;
  request.scenario.step = {"gpt2-124m:layers=2,width=64,heads=2,sequence=64,batch=4"};
  request.scenario.machine = "a100-sxm-40gb";
  request.budget = "200MiB";
  return request;
}

TEST(BatchAdvice, TheLargestFitsWithThePlanAndTheNextDoesNot) {
  Study study;
  const AdviceRequest request = tiny_request();
  const BatchAdvice advice = advise_batch(study, request);
  ASSERT_GT(advice.largest.probe.samples, 4);
  EXPECT_EQ(advice.budget, MiB(200));
  Scenario again = advice.largest.scenario;
  again.policies.push_back(advice.largest.policy);
  const memwall::Run run = study.run(again, {.record = false}).run;
  EXPECT_TRUE(run.trace->keeps_to_budgets());
  EXPECT_EQ(run.trace->samples_per_step, static_cast<double>(advice.largest.probe.samples));
  EXPECT_GT(advice.found.refused, advice.found.largest);
  EXPECT_GE(samples_per_second(advice.fastest.probe), samples_per_second(advice.largest.probe));
  Scenario untouched = advice.largest.scenario;
  const memwall::Run unplanned = study.run(untouched, {.record = false, .device_bytes = MiB(200)}).run;
  EXPECT_FALSE(unplanned.result.fits) << "a plan makes room for more than the step as it is";
}

TEST(BatchAdvice, ABudgetThatNothingFitsIntoHasNoBatch) {
  Study study;
  AdviceRequest request = tiny_request();
  request.budget = "2MiB";
  const BatchAdvice advice = advise_batch(study, request);
  EXPECT_EQ(advice.largest.probe.samples, 0);
  EXPECT_EQ(advice.found.refused, 1);
}

TEST(BatchAdvice, ABatchOfItsOwnAndRanksAreRefused) {
  Study study;
  AdviceRequest request = tiny_request();
  request.ranks = 8;
  EXPECT_THROW((void)advise_batch(study, request), UsageError);
  request.ranks = 0;
  request.scenario.policies = {"batch:8"};
  EXPECT_THROW((void)advise_batch(study, request), UsageError);
}

TEST(LargestBatchProbes, AreNoMoreThanAllowed) {
  const auto probe = [](std::int64_t samples, std::optional<BatchLimit>*) {
    BatchProbe p;
    p.samples = samples;
    p.fits = samples <= 700;
    return p;
  };
  const LargestBatch all = find_largest_batch(1, 1 << 20, probe);
  EXPECT_EQ(all.largest, 700);
  const LargestBatch few = find_largest_batch(1, 1 << 20, probe, 13);
  EXPECT_EQ(few.probes.size(), 13u);
  EXPECT_EQ(few.largest, 640);
  EXPECT_EQ(few.refused, 768);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
