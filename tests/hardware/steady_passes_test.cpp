// A long step from short ones: what is found where steps grow evenly, where they do not, and of a small job beside the
// whole of it.
#include "validate/published/steady_passes.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "models/hw/machine_file.h"
#include "models/workload/generate/configuration/workload_file.h"
#include "models/workload/generate/generate.h"
#include "study/study.h"
#include "validate/published/grown_steps.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

TEST(SteadyPasses, AnEvenGrowthIsFoundByThreeSteps) {
  std::vector<std::int64_t> asked;
  const StepGrowth growth = step_growth(512, 12, 1, [&](std::int64_t passes) {
    asked.push_back(passes);
    return 5 + 0.25 * static_cast<double>(passes);
  });
  EXPECT_EQ(asked, (std::vector<std::int64_t>{12, 13, 14}));
  EXPECT_EQ(growth.few, 14);
  EXPECT_DOUBLE_EQ(growth.seconds_per_pass, 0.25);
  EXPECT_DOUBLE_EQ(growth.at(512), 133);
}

// The first ten micro-batches are free, the others are not: three steps agree only behind them.
TEST(SteadyPasses, LongerStepsAreLookedAtUntilTheyAgree) {
  const auto seconds = [](std::int64_t passes) {
    return 1 + (passes > 10 ? 0.5 * static_cast<double>(passes - 10) : 0.1 * static_cast<double>(passes * passes));
  };
  const StepGrowth growth = step_growth(100, 7, 2, seconds);
  EXPECT_EQ(growth.few, 15);
  EXPECT_DOUBLE_EQ(growth.at(100), seconds(100));
}

TEST(SteadyPasses, WhatNeverAgreesIsLookedAtWhole) {
  const auto seconds = [](std::int64_t passes) { return static_cast<double>(passes * passes); };
  const StepGrowth growth = step_growth(20, 2, 1, seconds);
  EXPECT_EQ(growth.few, 20);
  EXPECT_DOUBLE_EQ(growth.at(20), 400);
  EXPECT_EQ(step_growth(1, 2, 1, seconds).at(1), 1);
}

double whole_step(const char* framework, std::int64_t passes) {
  TrainingJob job = load_training_job("gpt-megatron");
  set_all(job, {"layers=8", "width=1024", "heads=16", "tensor=2", "pipeline=4", "batch=1", "data_parallel=2",
                std::string("parallel_framework=") + framework, "accumulation=" + std::to_string(passes)});
  Study study;
  study.add_step("job", generate_step(job.model, job.recipe));
  study.add_machine("cluster", load_machine("dgx-a100-80gb"));
  return to_seconds(mean_step(study.run({.step = {"job"}, .machine = "cluster"}, {.record = false}).run));
}

TEST(SteadyPasses, AJobOfManyMicroBatchesTakesWhatItsFirstFewSay) {
  for (const char* framework : {"megatron", "deepspeed"}) {
    SCOPED_TRACE(framework);
    const StepGrowth growth = step_growth(48, 4, 1, [&](std::int64_t passes) { return whole_step(framework, passes); });
    EXPECT_LT(growth.few, 16);
    const double whole = whole_step(framework, 48);
    EXPECT_NEAR(growth.at(48), whole, 0.005 * whole);
    EXPECT_GT(growth.seconds_per_pass * 48, 0.8 * whole);  // control: most of it was not simulated
  }
}

PublishedCase row(std::int64_t passes) {
  PublishedCase one;
  one.job = load_training_job("gpt-megatron");
  one.job.recipe.parallel.pipeline = 4;
  one.job.recipe.accumulation = passes;
  return one;
}

// Rows that differ in micro-batches alone are simulated once; a job of fewer than were looked at, or another one, is
// not.
TEST(GrownSteps, RowsOfOneJobShareWhatWasSimulated) {
  GrownSteps steps;
  int simulated = 0;
  const auto grow = [&] {
    ++simulated;
    GrownStep grown;
    grown.growth = {6, 3, 0.5};
    grown.few.seconds = 3, grown.few.low = 2.7, grown.few.high = 3.6, grown.few.peak = 7, grown.few.seconds_at_peak = 1;
    return grown;
  };
  const SimulatedStep ten = steps.of(row(10), grow).at(10);
  EXPECT_DOUBLE_EQ(ten.seconds, 5);
  EXPECT_DOUBLE_EQ(ten.low, 4.5);
  EXPECT_DOUBLE_EQ(ten.high, 6);
  EXPECT_DOUBLE_EQ(ten.peak, 7);
  EXPECT_DOUBLE_EQ(ten.seconds_at_peak, 10.0 / 6);
  EXPECT_DOUBLE_EQ(steps.of(row(12), grow).at(12).seconds, 6);
  EXPECT_EQ(simulated, 1);
  steps.of(row(5), grow);
  EXPECT_EQ(simulated, 2);
  PublishedCase other = row(12);
  other.constants.network = 0.5;
  steps.of(other, grow);
  EXPECT_EQ(simulated, 3);
  other.job.recipe.parallel.tensor = 2;
  steps.of(other, grow);
  EXPECT_EQ(simulated, 4);
}

TEST(GrownSteps, ARefusalIsThatOfEveryRow) {
  GrownSteps steps;
  const auto refuse = []() -> GrownStep { throw std::runtime_error("refused"); };
  EXPECT_THROW(steps.of(row(4), refuse), std::runtime_error);
  EXPECT_THROW(steps.of(row(8), refuse), std::runtime_error);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
