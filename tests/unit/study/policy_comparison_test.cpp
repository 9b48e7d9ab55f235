// Is each cell of a comparison the run that it says it is, are refusals told apart from what does not fit, and is
// nothing that keeps the step's work faster than the bound?
#include "study/policy_comparison.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "sim/error.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/test_machine.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

constexpr const char* kRefused = "offload:what=activations,to=nowhere";

class PolicyComparisonTest : public ::testing::Test {
 protected:
  void SetUp() override {
    study_.add_step("step", gpt_step({.layers = 3, .hidden = 128, .sequence = 128, .batch = 8}));
    study_.add_machine("gpu", test_machine());
    question_.scenario.step = {"step"};
    question_.scenario.machine = "gpu";
  }
  PolicyComparison compared(std::vector<std::string> policies, std::vector<std::string> budgets) {
    question_.policies = std::move(policies);
    question_.budgets = std::move(budgets);
    return compare_policies(study_, question_);
  }
  static const PolicyCell& cell_of(const PolicyComparison& c, std::size_t budget, const std::string& policy) {
    const auto at = std::find(c.policies.begin(), c.policies.end(), policy);
    EXPECT_NE(at, c.policies.end()) << policy;
    return c.cell(budget, static_cast<std::size_t>(at - c.policies.begin()));
  }

  Study study_;
  PolicyQuestion question_;
};

TEST_F(PolicyComparisonTest, ACellIsTheRunOfItsPolicyOnAGpuOfItsBudget) {
  const PolicyComparison c = compared({"capuchin:min_bytes=0"}, {"100%", "70%", "1MiB"});
  const PolicyCell& all = cell_of(c, 0, "none");
  EXPECT_TRUE(all.fits);
  EXPECT_TRUE(all.keeps_work);
  EXPECT_EQ(all.step_time, c.unlimited_step);
  EXPECT_EQ(all.peak_reserved, c.unlimited_peak);
  const PolicyCell& planned = cell_of(c, 1, "capuchin:min_bytes=0");
  ASSERT_TRUE(planned.fits);
  Scenario alone = question_.scenario;
  alone.policies = {"capuchin:min_bytes=0,budget=" + std::to_string(c.budgets[1].bytes)};
  const memwall::Run run = study_.run(alone, {.record = false, .device_bytes = c.budgets[1].bytes}).run;
  EXPECT_EQ(planned.step_time, mean_step(run));
  EXPECT_EQ(planned.peak_reserved, run.result.tiers[0].peak_reserved);
  EXPECT_LE(planned.peak_reserved, c.budgets[1].bytes);
  EXPECT_GT(planned.moved + planned.rerun.count(), 0);
  const PolicyCell& tight = cell_of(c, 2, "none");
  EXPECT_FALSE(tight.fits);
  EXPECT_TRUE(tight.refusal.empty()) << "it does not fit, and nothing refuses it";
  EXPECT_GT(tight.missing, 0);
  EXPECT_EQ(tight.missing_in, "budget");
  EXPECT_FALSE(tight.is_on_front);
}

// A budget is the memory of the GPU that is asked about, not a limit within the machine's.
TEST_F(PolicyComparisonTest, ABudgetMayBeMoreThanTheMachinesGpuHas) {
  const std::vector<std::string> policies{"checkpoint:mode=full", "capuchin:min_bytes=0"}, budgets{"100%", "70%"};
  const PolicyComparison whole = compared(policies, budgets);
  Machine small = test_machine();
  small.tiers[0].capacity = small.tiers[0].unavailable + whole.budgets[1].bytes / 2;
  study_.add_machine("small gpu", small);
  question_.scenario.machine = "small gpu";
  ASSERT_FALSE(study_.run(question_.scenario, {.record = false}).run.result.fits);
  const PolicyComparison c = compared(policies, budgets);
  EXPECT_EQ(c.unlimited_step, whole.unlimited_step);
  EXPECT_EQ(c.unlimited_peak, whole.unlimited_peak);
  ASSERT_EQ(c.cells.size(), whole.cells.size());
  for (std::size_t i = 0; i < c.cells.size(); ++i) {
    EXPECT_EQ(c.cells[i].fits, whole.cells[i].fits) << i;
    EXPECT_EQ(c.cells[i].step_time, whole.cells[i].step_time) << i;
    EXPECT_EQ(c.cells[i].missing, whole.cells[i].missing) << i;
  }
  EXPECT_TRUE(cell_of(c, 0, "none").fits);
  EXPECT_FALSE(cell_of(c, 1, "none").fits);
}

TEST_F(PolicyComparisonTest, WhatIsRefusedHasASentenceAndNoFigures) {
  const PolicyComparison c = compared({kRefused, "capuchin:min_bytes=0"}, {"100%", "70%"});
  for (std::size_t b = 0; b < c.budgets.size(); ++b) {
    const PolicyCell& cell = cell_of(c, b, kRefused);
    EXPECT_NE(cell.refusal.find("nowhere"), std::string::npos) << cell.refusal;
    EXPECT_FALSE(cell.fits);
    EXPECT_FALSE(cell.is_on_front);
    EXPECT_EQ(cell.step_time, Duration{});
    EXPECT_EQ(cell_of(c, b, "capuchin:min_bytes=0").refusal, "") << "the others are compared all the same";
    ASSERT_GE(c.fastest(b), 0);
    EXPECT_NE(c.policies.at(static_cast<std::size_t>(c.fastest(b))), kRefused);
  }
}

TEST_F(PolicyComparisonTest, OnTheFrontIsWhatNoOtherCellBeats) {
  const PolicyComparison c = compared({"capuchin:min_bytes=0", "rotor", "checkpoint:every=2", "vdnn:min_bytes=0"},
                                      {"100%", "80%", "60%", "40%"});
  std::size_t on_front = 0, fitting = 0;
  const std::size_t policies = c.policies.size();
  for (std::size_t i = 0; i < c.cells.size(); ++i) {
    const PolicyCell& one = c.cells[i];
    bool is_beaten = false;
    for (std::size_t k = 0; k < c.cells.size(); ++k) {
      const Bytes budget = c.budgets[i / policies].bytes, other = c.budgets[k / policies].bytes;
      if (!c.cells[k].fits) continue;
      is_beaten = is_beaten || (other < budget && c.cells[k].step_time <= one.step_time) ||
                  (other == budget && c.cells[k].step_time < one.step_time);
    }
    EXPECT_EQ(one.is_on_front, one.fits && !is_beaten) << c.policies[i % policies] << " at " << i / policies;
    on_front += one.is_on_front ? 1 : 0;
    fitting += one.fits ? 1 : 0;
  }
  EXPECT_GT(on_front, 1u);
  EXPECT_LT(on_front, fitting) << "something that fits has to be beaten, or the front says nothing";
}

TEST_F(PolicyComparisonTest, BudgetsDescendPoliciesStandAsTheyWereNamedAndThreadsChangeNothing) {
  question_.jobs = 1;
  const std::vector<std::string> policies{"rotor", "capuchin:min_bytes=0", kRefused, "rotor", "checkpoint:mode=full"};
  const PolicyComparison one = compared(policies, {"30%", "100%", "70%", "30%"});
  question_.jobs = 2;
  const PolicyComparison two = compared(policies, {"30%", "100%", "70%", "30%"});
  EXPECT_EQ(one.policies,
            (std::vector<std::string>{"none", "checkpoint:mode=full", "rotor", "capuchin:min_bytes=0", kRefused}));
  ASSERT_EQ(one.budgets.size(), 3u);
  EXPECT_EQ(one.budgets[0].given, "100%");
  EXPECT_EQ(one.budgets[2].given, "30%");
  EXPECT_GT(one.budgets[0].bytes, one.budgets[1].bytes);
  EXPECT_EQ(one.cells.size(), 15u);
  EXPECT_TRUE(one.cells == two.cells);
  EXPECT_EQ(one.policies, two.policies);
  for (std::size_t b = 0; b < one.budgets.size(); ++b)
    EXPECT_EQ(one.bounds.at.at(b).step_time, two.bounds.at.at(b).step_time);
}

TEST_F(PolicyComparisonTest, NothingThatKeepsTheWorkIsFasterThanTheBound) {
  question_.all_planners = true;
  question_.jobs = 2;
  const PolicyComparison c =
      compared({"offload:what=activations,min_bytes=0", "checkpoint:every=2"}, {"100%", "80%", "60%", "45%", "30%"});
  EXPECT_GT(c.policies.size(), 15u);
  ASSERT_EQ(c.bounds.why_none, "");
  EXPECT_GT(c.bounds.at.back().step_time, c.unlimited_step) << "a bound that says more than the work there is";
  std::size_t held = 0;
  for (std::size_t b = 0; b < c.budgets.size(); ++b)
    for (std::size_t p = 0; p < c.policies.size(); ++p) {
      const PolicyCell& cell = c.cell(b, p);
      EXPECT_TRUE(cell.keeps_work) << c.policies[p] << ": a plan of memory changes no kernel";
      if (!cell.fits) continue;
      ASSERT_TRUE(c.bounds.at[b].is_possible) << c.policies[p] << " at " << c.budgets[b].given;
      EXPECT_GE(cell.step_time, c.bounds.at[b].step_time) << c.policies[p] << " at " << c.budgets[b].given;
      ++held;
    }
  EXPECT_GT(held, 20u);
}

TEST_F(PolicyComparisonTest, WhatChangesTheWorkSaysSo) {
  const PolicyComparison c =
      compared({"reversible", "offload:what=optimizer,to=host", "offload:what=activations,min_bytes=0"}, {"100%"});
  EXPECT_FALSE(cell_of(c, 0, "reversible").keeps_work);
  EXPECT_FALSE(cell_of(c, 0, "offload:what=optimizer,to=host").keeps_work);
  EXPECT_TRUE(cell_of(c, 0, "offload:what=activations,min_bytes=0").keeps_work);
}

TEST_F(PolicyComparisonTest, TheBoundCountsEveryMemoryThatAPolicyUses) {
  const std::string peer = "offload:what=activations,to=peer,min_bytes=0";
  const PolicyComparison c = compared({peer}, {"100%", "50%"});
  EXPECT_EQ(c.bounds.tiers, (std::vector<std::string>{"host", "peer_hbm"}));
  EXPECT_EQ(cell_of(c, 0, peer).tiers, (std::vector<std::string>{"hbm", "peer_hbm"}));
  for (std::size_t b = 0; b < c.budgets.size(); ++b)
    if (const PolicyCell& cell = cell_of(c, b, peer); cell.fits) {
      EXPECT_GE(cell.step_time, c.bounds.at[b].step_time);
    }
  EXPECT_EQ(compared({"rotor"}, {"50%"}).bounds.tiers, std::vector<std::string>{"host"});
}

TEST_F(PolicyComparisonTest, WhatMakesNoSenseIsRefusedBeforeAnythingRuns) {
  EXPECT_THROW((void)compared({"capuchin:budget=1GiB"}, {"70%"}), UsageError) << "a budget of its own";
  EXPECT_THROW((void)compared({"batch:16"}, {"70%"}), UsageError) << "no memory plan";
  EXPECT_THROW((void)compared({"rotor"}, {"0%"}), UsageError);
  EXPECT_THROW((void)compared({"rotor"}, {"12"}), UsageError) << "less than 1 MiB";
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
