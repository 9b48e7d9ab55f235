// Is a step with a part twice as fast what a run with that part scaled gives?
#include "study/speedups.h"

#include <gtest/gtest.h>

#include <map>

#include "study/study.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/test_machine.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

class SpeedupsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Trace step = gpt_step({.layers = 4, .hidden = 64, .sequence = 64, .batch = 8});
    for (Op& op : step.ops) op.host_gap = microseconds(2);
    for (const char* machine : {"gpu", "kernels", "host"}) {  // measured there
      step.machine = machine;
      study_.add_step(machine, step);
    }
    Machine machine = test_machine();
    machine.name = "gpu";
    study_.add_machine("gpu", machine);
    for (const std::uint16_t link : {machine.hbm_link, machine.dram_link}) {
      Machine faster = machine;
      faster.name = link == machine.hbm_link ? "kernels" : "host";
      faster.links[link].bandwidth *= 2;
      study_.add_machine(faster.name, faster);
    }
    scenario_.step = {"gpu"};
    scenario_.machine = "gpu";
  }

  std::map<std::string, Duration> tried(const Scenario& scenario) {
    std::map<std::string, Duration> all;
    for (const Speedup& speedup : study_.run(scenario, {.try_speedups = true}).run.speedups)
      all[speedup.what] = speedup.step_time;
    return all;
  }

  Study study_;
  Scenario scenario_;
};

TEST_F(SpeedupsTest, AreTheRunsWithTheseScales) {
  const std::map<std::string, Duration> speedups = tried(scenario_);
  ASSERT_TRUE(speedups.contains("kernels") && speedups.contains("host"));
  EXPECT_FALSE(speedups.contains("collectives")) << "one GPU";
  for (const auto& [what, step_time] : speedups) {
    if (what == "copies") continue;  // with their links: below
    Scenario scaled = scenario_;
    scaled.scale = {what + "=0.5"};
    scaled.step = {what};
    scaled.machine = what;
    EXPECT_EQ(step_time, mean_step(study_.run(scaled, {}).run)) << what;
  }
}

// What policies add is not scaled by --scale; here it is.
TEST_F(SpeedupsTest, CountWhatPoliciesAdd) {
  scenario_.policies = {"offload:what=activations,to=host,min_bytes=0"};
  const Duration step = mean_step(study_.run(scenario_, {}).run);
  const std::map<std::string, Duration> speedups = tried(scenario_);
  ASSERT_TRUE(speedups.contains("copies"));
  EXPECT_LT(speedups.at("copies"), step);
  scenario_.policies = {"zero:stage=3,ranks=2"};
  EXPECT_TRUE(tried(scenario_).contains("collectives"));
}

TEST_F(SpeedupsTest, AreNotTriedWhereTheStepDoesNotFitOrAPagerDecides) {
  scenario_.pager = "lru";
  EXPECT_TRUE(tried(scenario_).empty());
  scenario_.pager.clear();
  Machine small = test_machine();
  small.name = "small";
  small.tiers[0].capacity = small.tiers[0].unavailable + 1000;
  study_.add_machine("small", small);
  scenario_.machine = "small";
  EXPECT_TRUE(tried(scenario_).empty());
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
