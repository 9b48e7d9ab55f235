// Is the least time within a budget what it should be at its ends, and is there a sentence where there is none?
#include "study/budget_bound.h"

#include <gtest/gtest.h>

#include "study/study.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/test_machine.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

class BudgetBoundTest : public ::testing::Test {
 protected:
  memwall::Run unlimited(Trace step, Machine machine = test_machine()) {
    study_.add_step("step", std::move(step));
    study_.add_machine("gpu", std::move(machine));
    return study_.run({.step = {"step"}, .machine = "gpu"}, {.record = false}).run;
  }
  static Trace step() { return gpt_step({.layers = 2, .hidden = 128, .sequence = 128, .batch = 8}); }

  Study study_;
};

TEST_F(BudgetBoundTest, ItIsTheStepItselfWhereAllFitsAndGrowsWithLessMemory) {
  const memwall::Run run = unlimited(step());
  const Bytes peak = run.result.tiers[0].peak_reserved;
  const BudgetBounds bounds = budget_bounds(run, {"host"}, {peak, peak * 7 / 10, peak / 2, peak * 3 / 10, MiB(1)});
  ASSERT_EQ(bounds.why_none, "");
  ASSERT_EQ(bounds.at.size(), 5u);
  EXPECT_EQ(bounds.tiers, std::vector<std::string>{"host"});
  EXPECT_NEAR(to_seconds(bounds.at[0].step_time), to_seconds(mean_step(run)), 1e-6 * to_seconds(mean_step(run)));
  for (std::size_t b = 0; b + 2 < bounds.at.size(); ++b) {
    ASSERT_TRUE(bounds.at[b].is_possible);
    EXPECT_LE(bounds.at[b].step_time, bounds.at[b + 1].step_time);
  }
  EXPECT_GT(bounds.at[3].step_time, bounds.at[0].step_time) << "three tenths of the memory cost something";
  EXPECT_FALSE(bounds.at[4].is_possible) << "one op alone uses more than 1 MiB";
  EXPECT_GT(bounds.at[4].least_budget, MiB(1));
}

TEST_F(BudgetBoundTest, AFasterTierMakesItLess) {
  const memwall::Run run = unlimited(step());
  const Bytes budget = run.result.tiers[0].peak_reserved * 3 / 10;
  const BudgetBounds host = budget_bounds(run, {"host"}, {budget});
  const BudgetBounds both = budget_bounds(run, {"host", "peer_hbm", "host", "hbm", "of no machine"}, {budget});
  EXPECT_EQ(both.tiers, (std::vector<std::string>{"host", "peer_hbm"})) << "each once, those that the machine has";
  EXPECT_LE(both.at.at(0).step_time, host.at.at(0).step_time);
}

TEST_F(BudgetBoundTest, AStepWithoutDataflowAndAMachineWithoutATierHaveNone) {
  Trace blind = step();
  blind.knowledge.dataflow = false;
  const memwall::Run run = unlimited(std::move(blind));
  const BudgetBounds unknown = budget_bounds(run, {"host"}, {MiB(64)});
  EXPECT_EQ(unknown.why_none, "There is no lower bound: the step does not know its dataflow.");
  EXPECT_TRUE(unknown.at.empty());
  const BudgetBounds nowhere = budget_bounds(run, {"hbm", "of no machine"}, {MiB(64)});
  EXPECT_NE(nowhere.why_none, "");
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
