// Are intervals judged by what they hold: the deviation that rows ask for, coverage by kind and by tables left out?
#include "validate/published/interval_coverage.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

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

// Nine rows: the eighth smallest error must be held.
TEST(ConformalDeviation, HoldsTheRankOfAllRows) {
  std::vector<PublishedResult> rows;
  for (int i = 1; i <= 9; ++i) rows.push_back(row(i % 2 ? 0.01 * i : -0.01 * i, 0.001));
  const double needed = std::sqrt(std::pow(0.08 / kDeviationsOf80Percent, 2) - 1e-6);
  EXPECT_NEAR(conformal_deviation(rows, 0), needed, 0.0006);
  // With a deviation already in the intervals the same is asked for.
  for (PublishedResult& r : rows) {
    const double all = std::sqrt(1e-6 + 0.05 * 0.05);
    r.low = std::exp(-kDeviationsOf80Percent * all), r.high = std::exp(kDeviationsOf80Percent * all);
  }
  EXPECT_NEAR(conformal_deviation(rows, 0.05), needed, 0.0006);
}

TEST(ConformalDeviation, IsNothingWherePricesExplainTheErrors) {
  EXPECT_EQ(conformal_deviation(std::vector<PublishedResult>(5, row(0.05, 0.05)), 0), 0);
  EXPECT_EQ(conformal_deviation({}, 0), 0);
}

// Of rows drawn from one distribution the deviation of some holds four fifths of the others, as it says.
TEST(ConformalDeviation, HoldsAsManyOfNewRows) {
  std::mt19937 random(25);
  std::normal_distribution<double> error(0, 0.1);
  double inside = 0, all = 0;
  for (int draw = 0; draw < 200; ++draw) {
    std::vector<PublishedResult> rows;
    for (int i = 0; i < 29; ++i) rows.push_back(row(error(random), 0.02));
    const double total = std::hypot(0.02, conformal_deviation(rows, 0));
    for (int i = 0; i < 20; ++i, ++all) inside += std::abs(error(random)) <= kDeviationsOf80Percent * total;
  }
  EXPECT_NEAR(inside / all, 0.8, 0.03);
}

TEST(IntervalCoverage, CountsRowsToWhichNothingWasFitted) {
  std::vector<PublishedResult> rows{row(0.01, 0.1), row(0.5, 0.1), row(0.01, 0.1, "a", Half::fitted)};
  rows.push_back(row(0.01, 0.1));
  rows.back().metric = "peak active";
  const std::vector<IntervalCoverage> coverage = interval_coverage(rows);
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
  const double wide = std::hypot(0.001, program_deviation(JobKind::one_gpu));
  for (int i = 0; i < 4; ++i) rows.push_back(row(0.001, wide, "near"));
  for (int i = 0; i < 4; ++i) rows.push_back(row(0.4, wide, "far"));
  const IntervalCoverage all = interval_coverage(rows).front();
  ASSERT_TRUE(all.inside_held_out);
  EXPECT_DOUBLE_EQ(*all.inside_held_out, 0.5);
  EXPECT_GT(all.deviation, 0.3);
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

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
