// What do plans of policies/cycle reach on the workloads that G10 publishes, carried out by a checker written apart
// (tests/support/turn_replay.h), in the steady state? And do they come near the bounds, which are known?
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <cmath>

#include "policies/cycle/step_plan.h"
#include "study/study.h"
#include "tests/support/shared_data.h"
#include "tests/support/turn_of_plan.h"

namespace memwall {
namespace {

// Percent of the ideal step, with unlimited memory.
struct StepPlanCell {
  const char* workload;
  int gibibytes;
  bool recompute;
  double least;       // that the plan reaches
  double bound = -1;  // of plans that only move; < 0: not asked
  friend void PrintTo(const StepPlanCell& cell, std::ostream* out) {
    *out << cell.workload << " at " << cell.gibibytes << " GiB" << (cell.recompute ? ", moves and re-runs" : ", moves");
  }
};

class G10StepPlans : public testing::TestWithParam<StepPlanCell> {
 protected:
  void SetUp() override {
    const auto data = shared_data();
    if (!data) GTEST_SKIP() << "no workloads: MEMWALL_SHARED names no folder with data/";
    folder_ = *data / "g10";
  }
  std::filesystem::path folder_;
};

TEST_P(G10StepPlans, ReachWhatIsKnownToBePossible) {
  const StepPlanCell& cell = GetParam();
  Scenario scenario;
  scenario.step = {(folder_ / (std::string(cell.workload) + ".kernels.csv")).string()};
  scenario.machine = "g10-a100-40gb";
  Study study;
  const LoadedStep step = study.load(scenario);
  const StepProfile profile(*step.trace, *step.machine);
  StepPlanSettings settings;
  settings.recompute = cell.recompute;
  const Bytes budget = GiB(cell.gibibytes);
  const StepPlan found = plan_step(profile, budget, *step.machine, settings);
  ASSERT_TRUE(found.fits);
  const ReplayedTurns replayed =
      replay_turns(turn_of(profile, found.plan), links_of_machine(*step.machine, settings.tiers));
  EXPECT_EQ(replayed.faults, std::vector<std::string>{});
  EXPECT_LE(replayed.highest, budget);
  EXPECT_NEAR(replayed.seconds, found.seconds, 1e-3 * found.seconds) << "the checker and the planner's own replay";

  const double ideal = found.ideal_seconds, reached = 100 * ideal / replayed.seconds;
  const double of_moves = found.moves_bound.seconds, of_both = found.joint_bound_seconds;
  RecordProperty("percent_of_ideal", fmt::format("{:.2f}", reached));
  fmt::print("{} at {} GiB, {}: {:.2f} % of the ideal; bounds {:.2f} (moves), {:.2f} (both)\n", cell.workload,
             cell.gibibytes, cell.recompute ? "both" : "moves", reached, 100 * ideal / of_moves, 100 * ideal / of_both);
  EXPECT_GE(reached, cell.least);
  const double bound = cell.recompute ? of_both : of_moves;
  EXPECT_GE(replayed.seconds, bound * (1 - 1e-9)) << "no plan is faster than its bound";
  EXPECT_GE(bound / replayed.seconds, cell.recompute ? 0.98 : 0.985);
  if (cell.bound >= 0) {
    EXPECT_NEAR(100 * ideal / of_moves, cell.bound, 0.1);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Cells, G10StepPlans,
    testing::Values(StepPlanCell{"BERT-128", 40, false, 99.5}, StepPlanCell{"BERT-256", 40, false, 99.5},
                    StepPlanCell{"VIT-1024", 40, false, 99.5}, StepPlanCell{"BERT-512", 40, false, 96.9, 97.46},
                    StepPlanCell{"Inceptionv3-512", 40, false, 99.9}, StepPlanCell{"ResNet152-256", 40, false, 99.9},
                    StepPlanCell{"ResNet152-512", 40, false, 99.9}, StepPlanCell{"BERT-512", 20, false, 0, 85.86},
                    StepPlanCell{"BERT-256", 16, false, 0, 96.02}, StepPlanCell{"BERT-512", 40, true, 99.5},
                    StepPlanCell{"BERT-512", 20, true, 97.8}, StepPlanCell{"BERT-256", 16, true, 99.3}));

}  // namespace
}  // namespace memwall
