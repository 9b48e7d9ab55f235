// Is a step with another host bounded by what is known of its path and of its busiest thread?
#include "traces/run/analysis/host_share.h"

#include <gtest/gtest.h>

#include <cmath>

#include "study/study.h"
#include "traces/run/analysis/summary.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

TEST(HostShare, ThePathGrowsOrTheThreadDecides) {
  const HostShare share{.path = 0.2, .thread = 0.7};
  EXPECT_DOUBLE_EQ(share.longer_by(1), 1);
  EXPECT_DOUBLE_EQ(share.longer_by(1.3), 1 + 0.3 * 0.2) << "the thread still ends before the device";
  EXPECT_DOUBLE_EQ(share.longer_by(3), 3 * 0.7);
  EXPECT_DOUBLE_EQ(share.shorter_by(2), 1 - 0.2 / 2);
  EXPECT_DOUBLE_EQ(HostShare{}.longer_by(5), 1);
}

TEST(HostShare, TheFactorIsTheOneThatSaysThatMuch) {
  const HostShare share{.path = 0.2, .thread = 0.7};
  for (const double factor : {1.05, 1.5, 3.0}) {
    EXPECT_NEAR(share.factor_of(share.longer_by(factor)), factor, 1e-12) << factor;
    EXPECT_NEAR(share.factor_of(share.shorter_by(factor)), factor, 1e-12) << factor;
  }
  EXPECT_TRUE(std::isinf(share.factor_of(0.7))) << "a host that takes no time saves a fifth";
  EXPECT_TRUE(std::isinf(HostShare{}.factor_of(1.5)));
}

double seconds_of(Study& study, const std::string& step, double host, std::optional<StepInterval>* interval = nullptr) {
  Scenario scenario{.step = {step}, .machine = "dgx-a100-80gb"};
  if (host != 1) scenario.scale.push_back("kernels=1,host=" + std::to_string(host) + ",collectives=1");
  const RunSummary summary = summarize(study.run(scenario).run);
  if (interval) *interval = summary.step_interval;
  return to_seconds(summary.step_time);
}

// Where the host decides, nearly decides, and does not; one GPU, and ranks of a pipeline, in which no path that is
// known need be the longest: steps with other hosts take no less than is said, and not much more.
TEST(HostShare, BoundsStepsThatAreSimulatedWithAnotherHost) {
  struct Case {
    const char* step;
    double most_path;  // which of them it is
  };
  const Case cases[] = {
      {"gpt2-124m:layers=4,batch=1,sequence=64", 1},
      {"gpt2-124m:layers=4,batch=2,sequence=512", 0.5},
      {"gpt2-124m:layers=4,batch=16,sequence=1024", 0.1},
      {"gpt-megatron:layers=4,width=512,longest=256,sequence=256,batch=4,tensor=2,pipeline=2,accumulation=4", 1}};
  double least_path = 1;
  for (const Case& c : cases) {
    SCOPED_TRACE(c.step);
    Study study;
    std::optional<StepInterval> interval;
    const double seconds = seconds_of(study, c.step, 1, &interval);
    ASSERT_TRUE(interval);
    EXPECT_LE(interval->host.path, c.most_path);
    least_path = std::min(least_path, interval->host.path);
    for (const double factor : {1.2, 2.0, 4.0}) {
      const double slower = seconds_of(study, c.step, factor) / seconds,
                   faster = seconds_of(study, c.step, 1 / factor) / seconds;
      EXPECT_GE(slower * 1.001, interval->host.longer_by(factor)) << factor;
      EXPECT_LE(slower, 1.25 * interval->host.longer_by(factor)) << factor;
      EXPECT_GE(faster * 1.001, interval->host.shorter_by(factor)) << factor;
    }
  }
  EXPECT_LT(least_path, 0.1);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
