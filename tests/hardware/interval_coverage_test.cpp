// Are intervals judged by what they hold: the deviation that rows ask for, coverage by kind and by tables left out?
#include "validate/published/interval_coverage.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <tuple>

#include "study/study.h"
#include "traces/run/analysis/summary.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

constexpr double kDeviationsOf80Percent = 1.2816;

// Predicted 1 s, measured exp(error) s, with an interval that prices alone make `deviation` wide.
PublishedResult row(double error, double deviation, const std::string& table = "a", Half half = Half::judged) {
  PublishedResult r;
  r.table = table;
  r.metric = "step time";
  r.half = half;
  r.job = JobKind::one_gpu;
  r.predicted = 1;
  r.measured = std::exp(error);
  r.low = std::exp(-kDeviationsOf80Percent * deviation);
  r.high = std::exp(kDeviationsOf80Percent * deviation);
  return r;
}

// Nine rows that all take longer: the eighth smallest error must be held, and nothing below.
TEST(ConformalDeviation, HoldsTheRankOfAllRows) {
  std::vector<PublishedResult> rows;
  for (int i = 1; i <= 9; ++i) rows.push_back(row(0.01 * i, 0.001));
  const double needed = std::sqrt(std::pow(0.08 / kDeviationsOf80Percent, 2) - 1e-6);
  EXPECT_NEAR(conformal_deviation(rows, {}).longer, needed, 0.0006);
  EXPECT_EQ(conformal_deviation(rows, {}).shorter, 0);
  // With a deviation already in the intervals the same is asked for.
  for (PublishedResult& r : rows) {
    const double all = std::sqrt(1e-6 + 0.05 * 0.05);
    r.low = std::exp(-kDeviationsOf80Percent * all), r.high = std::exp(kDeviationsOf80Percent * all);
  }
  EXPECT_NEAR(conformal_deviation(rows, {0.05, 0.05}).longer, needed, 0.0006);
}

// The row that is let go is the one that saves most.
TEST(ConformalDeviation, LetsGoWhatSavesMost) {
  std::vector<PublishedResult> rows(7, row(0.01, 0.001));
  rows.push_back(row(-0.5, 0.001));
  rows.push_back(row(0.05, 0.001));
  const ProgramDeviation least = conformal_deviation(rows, {});
  EXPECT_EQ(least.shorter, 0);
  EXPECT_NEAR(least.longer, 0.05 / kDeviationsOf80Percent, 0.001);
}

TEST(ConformalDeviation, IsNothingWherePricesExplainTheErrors) {
  for (const auto& rows : {std::vector<PublishedResult>(5, row(0.05, 0.05)), std::vector<PublishedResult>()}) {
    EXPECT_EQ(conformal_deviation(rows, {}).longer, 0);
    EXPECT_EQ(conformal_deviation(rows, {}).shorter, 0);
  }
}

// Of rows drawn from one distribution the deviations of some hold four fifths of the others, but for what is lost by
// choosing the narrowest of several intervals.
TEST(ConformalDeviation, HoldsAsManyOfNewRows) {
  std::mt19937 random(25);
  std::normal_distribution<double> error(0, 0.1);
  double inside = 0, all = 0;
  for (int draw = 0; draw < 200; ++draw) {
    std::vector<PublishedResult> rows;
    for (int i = 0; i < 29; ++i) rows.push_back(row(error(random), 0.02));
    const ProgramDeviation program = conformal_deviation(rows, {});
    const double below = -kDeviationsOf80Percent * std::hypot(0.02, program.shorter),
                 above = kDeviationsOf80Percent * std::hypot(0.02, program.longer);
    for (int i = 0; i < 20; ++i, ++all) {
      const double e = error(random);
      inside += e >= below && e <= above ? 1 : 0;
    }
  }
  // The shortest interval that holds four fifths of these rows is fitted to them: of new rows it holds fewer.
  EXPECT_NEAR(inside / all, 0.74, 0.03);
}

TEST(IntervalCoverage, CountsRowsToWhichNothingWasFitted) {
  std::vector<PublishedResult> rows{row(0.01, 0.1), row(0.5, 0.1), row(0.01, 0.1, "a", Half::fitted)};
  rows.push_back(row(0.01, 0.1));
  rows.back().metric = "peak active";
  const std::vector<IntervalCoverage> coverage = interval_coverage(rows, CoverageOf::fitted);
  ASSERT_EQ(coverage.size(), 2u);
  EXPECT_EQ(coverage[0].job, JobKind::one_gpu);
  EXPECT_EQ(coverage[0].rows, 2u);
  EXPECT_DOUBLE_EQ(coverage[0].inside, 0.5);
  EXPECT_NEAR(coverage[0].half_width, kDeviationsOf80Percent * 0.1, 1e-9);
  EXPECT_FALSE(coverage[0].inside_held_out) << "there is one table";
  EXPECT_FALSE(coverage[1].job);
  EXPECT_EQ(coverage[1].rows, 2u);
}

// A table far off is not held by what an accurate one asks for; its own rows would hold it.
TEST(IntervalCoverage, ATableLeftOutIsJudgedByTheOthers) {
  std::vector<PublishedResult> rows;
  const double wide = std::hypot(0.001, program_deviation(JobKind::one_gpu).longer);
  for (int i = 0; i < 4; ++i) rows.push_back(row(0.001, wide, "near"));
  for (int i = 0; i < 4; ++i) rows.push_back(row(0.4, wide, "far"));
  const IntervalCoverage all = interval_coverage(rows, CoverageOf::unfitted).front();
  ASSERT_TRUE(all.inside_held_out);
  EXPECT_DOUBLE_EQ(*all.inside_held_out, 0.5);
  EXPECT_GT(all.deviation.longer, 0.3);
}

// Without constants another time is predicted, and that is what the interval of a stranger's job is judged by.
TEST(IntervalCoverage, CountsWhatOneIsToldWithoutConstants) {
  std::vector<PublishedResult> rows{row(0.01, 0.1), row(0.01, 0.1)};
  rows[0].unfitted = {0.5, 0.45, 0.55, JobKind::one_gpu, {}};
  EXPECT_DOUBLE_EQ(interval_coverage(rows, CoverageOf::fitted)[0].inside, 1);
  EXPECT_DOUBLE_EQ(interval_coverage(rows, CoverageOf::unfitted)[0].inside, 0.5);
}

// Rows without constants are calibrated apart: an accurate table with constants says nothing of one without.
TEST(IntervalCoverage, WithConstantsOnlyRowsThatHaveSomeCalibrate) {
  std::vector<PublishedResult> rows;
  for (int i = 0; i < 5; ++i) rows.push_back(row(0.1, 0.001, "with"));
  for (PublishedResult& r : rows) r.fitted = true;
  for (int i = 0; i < 5; ++i) rows.push_back(row(0.5, 0.001, "without"));
  const IntervalCoverage fitted = interval_coverage(rows, CoverageOf::fitted).front();
  EXPECT_EQ(fitted.rows, 10u);
  EXPECT_EQ(fitted.calibrating, 5u);
  EXPECT_FALSE(fitted.inside_held_out) << "one table has constants";
  EXPECT_NEAR(fitted.deviation.longer, 0.1 / kDeviationsOf80Percent, 0.005);
  EXPECT_EQ(interval_coverage(rows, CoverageOf::unfitted).front().calibrating, 10u);
}

// Hosts that take twice as long, of steps that are all the host's, half or none.
TEST(HostCoverage, AsksOfStepsThatHangOnTheHostForAFactor) {
  std::vector<PublishedResult> rows(6, row(0, 0.1));
  const auto set = [&](std::size_t i, double path, double measured) {
    rows[i].measured = measured;
    rows[i].unfitted = {1, 0.9, 1.1, JobKind::one_gpu, {path, 0}};
  };
  set(0, 1, 2), set(1, 1, 2), set(2, 0.5, 1.5), set(3, 0.5, 1.5), set(4, 1, 1), set(5, 0.1, 5);
  const HostCoverage c = host_coverage(rows);
  EXPECT_EQ(c.rows, 5u) << "the last is the device's";
  EXPECT_DOUBLE_EQ(c.inside, 0.2);
  EXPECT_NEAR(c.deviation.longer, std::log(2) / kDeviationsOf80Percent, 0.001);
  EXPECT_EQ(c.deviation.shorter, 0);
}

// What is wrong alike on both GPUs is not wrong of what one says of the other.
TEST(CarriedCoverage, ComparesRowsOfOneJobOnTwoGpus) {
  std::vector<PublishedResult> rows;
  for (const auto& [gpu, work, error] :
       {std::tuple("A", "one", 0.5), {"B", "one", 0.4}, {"A", "two", 0.1}, {"B", "two", 0.9}, {"A", "three", 0.7}}) {
    rows.push_back(row(error, 0.1));
    rows.back().unfitted = {1, 0.9, 1.1, JobKind::one_gpu, {}};
    rows.back().gpu = gpu, rows.back().work = work;
  }
  const CarriedCoverage c = carried_coverage(rows);
  EXPECT_EQ(c.pairs, 4u) << "two jobs, both ways";
  EXPECT_DOUBLE_EQ(c.inside, 0.5);
  EXPECT_NEAR(c.deviation, 0.8 / kDeviationsOf80Percent, 0.001);
}

// Which kind a job is follows from what its step does.
TEST(JobKind, FollowsFromCollectivesAndHostWork) {
  Study study;
  const auto kind = [&](std::vector<std::string> policies) {
    const memwall::Run run = study
                                 .run({.step = {"llama3.2-1b:layers=2,batch=1,sequence=128"},
                                       .machine = "dgx-a100-80gb",
                                       .policies = std::move(policies)})
                                 .run;
    const RunSummary summary = summarize(run);
    return summary.step_interval ? summary.step_interval->job : std::nullopt;
  };
  EXPECT_EQ(kind({}), JobKind::one_gpu);
  EXPECT_EQ(kind({"ddp:ranks=8"}), JobKind::data_parallel);
  EXPECT_EQ(kind({"fsdp:ranks=8"}), JobKind::sharded);
  EXPECT_EQ(kind({"deepspeed:stage=2,ranks=8"}), JobKind::deepspeed);
  EXPECT_EQ(kind({"deepspeed:stage=3,ranks=8,offload_optimizer=cpu"}), JobKind::offloaded);
}

TEST(JobKind, OfADividedModelIsModelParallel) {
  Study study;
  for (const char* step : {"gpt-megatron:layers=2,longest=128,sequence=128,tensor=2,data_parallel=2",
                           "gpt-megatron:layers=2,longest=128,sequence=128,pipeline=2,accumulation=2",
                           "gpt-megatron:layers=2,longest=128,sequence=128,tensor=2,pipeline=2,accumulation=2,"
                           "parallel_framework=deepspeed,distributed_optimizer=1,data_parallel=2"}) {
    const memwall::Run run = study.run({.step = {step}, .machine = "dgx-a100-80gb"}).run;
    const RunSummary summary = summarize(run);
    ASSERT_TRUE(summary.step_interval) << step;
    EXPECT_EQ(summary.step_interval->job, JobKind::model_parallel) << step;
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
