// Are the layouts those that train on the same samples, is the best of them the fastest that fits, and is what cannot
// be laid out anew refused?
#include "study/step_layouts.h"

#include <gtest/gtest.h>

#include "sim/error.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

Scenario tiny(const std::string& settings) {
  Scenario scenario;
  scenario.step = {"gpt2-124m:layers=2,width=64,heads=2,sequence=64" + settings};
  scenario.machine = "a100-sxm-40gb";
  return scenario;
}

TEST(StepLayouts, OfOneGpuAreMicroBatchesOfTheSameSamples) {
  Study study;
  const std::vector<StepLayout> all = layouts_of(study, tiny(",batch=4,accumulation=2"), 1);
  std::vector<std::pair<std::int64_t, std::int64_t>> found;
  for (const StepLayout& layout : all) {
    EXPECT_FALSE(layout.zero_stage);
    EXPECT_TRUE(layout.scenario.policies.empty());
    found.emplace_back(layout.micro_batch, layout.passes);
  }
  EXPECT_EQ(found, (std::vector<std::pair<std::int64_t, std::int64_t>>{{4, 2}, {8, 1}, {2, 4}, {1, 8}}));
  EXPECT_EQ(all.front().scenario, tiny(",batch=4,accumulation=2")) << "as it was given";
  EXPECT_EQ(all[2].scenario.step.front(), "gpt2-124m:layers=2,width=64,heads=2,sequence=64,batch=2,accumulation=4");
  for (const StepLayout& layout : all) {
    const Trace& trace = *study.load(layout.scenario).trace;
    EXPECT_EQ(trace.samples_per_step, 8) << layout.scenario.step.front();
  }
}

TEST(StepLayouts, OfSeveralGpusHaveEachStageOfZero) {
  Study study;
  const std::vector<StepLayout> all = layouts_of(study, tiny(",batch=2"), 8);
  ASSERT_EQ(all.size(), 8u);
  EXPECT_EQ(all.front().scenario.policies, std::vector<std::string>{"zero:stage=0,ranks=8"});
  EXPECT_EQ(all.back().zero_stage, 3);
  EXPECT_EQ(all.back().micro_batch, 1);
}

TEST(StepLayouts, ACaptureKeepsItsMicroBatch) {
  Study study;
  Scenario scenario;
  scenario.step = {MEMWALL_SOURCE "/traces/samples/gpt_124m.mwt"};
  const std::vector<StepLayout> all = layouts_of(study, scenario, 8);
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all.front().micro_batch, 0);
}

TEST(StepLayouts, AStageOfZeroBesideIsRefused) {
  Study study;
  Scenario scenario = tiny("");
  scenario.policies = {"zero:stage=1,ranks=8"};
  EXPECT_THROW((void)layouts_of(study, scenario, 8), UsageError);
}

TEST(StepLayouts, TheFastestThatFitsStandsFirstWhateverTheNumberOfThreads) {
  for (const Bytes budget : {GiB(30), MiB(60), MiB(2)}) {
    std::vector<std::string> order;
    for (const unsigned jobs : {1u, 3u}) {
      Study study;
      std::vector<StepLayout> all = layouts_of(study, tiny(",batch=8"), 8);
      compare_layouts(study, all, {"plan:search=0,budget=" + std::to_string(budget), budget, {"host"}, jobs});
      std::vector<std::string> found;
      const AdvisedPlan& best = all.front().best();
      EXPECT_TRUE(all.front().refusal.empty());
      EXPECT_TRUE(best.fits || budget < GiB(30));
      EXPECT_FALSE(best.fits && budget <= MiB(2));
      for (const StepLayout& layout : all) {
        found.push_back(layout.scenario.step.front() + layout.scenario.policies.front());
        if (!layout.refusal.empty()) continue;
        EXPECT_TRUE(!layout.best().fits || layout.best().step_time >= best.step_time);
        if (layout.planned && layout.planned->fits) {
          EXPECT_GE(layout.planned->step_time, layout.bound);
        }
      }
      if (order.empty()) order = found;
      EXPECT_EQ(found, order);
    }
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
