// What do plans of policies/cycle reach on the workloads that G10 publishes, carried out by a checker written apart
// (tests/support/turn_replay.h), in the steady state? And do they come near the bounds, which are known? The table of
// docs/planning.md is made here (MEMWALL_UPDATE_GOLDEN=1) and held against the program.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "policies/cycle/step_plan.h"
#include "study/study.h"
#include "tests/support/shared_data.h"
#include "tests/support/turn_of_plan.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

// Percent of the ideal step, with unlimited memory.
struct StepPlanCell {
  const char* workload;
  int gibibytes;
  bool recompute;
  double least;       // that the plan reaches
  double bound = -1;  // of plans that only move; < 0: not asked
  bool nvme = false;  // behind the host's memory
  friend void PrintTo(const StepPlanCell& cell, std::ostream* out) {
    *out << cell.workload << " at " << cell.gibibytes << " GiB" << (cell.recompute ? ", moves and re-runs" : ", moves")
         << (cell.nvme ? ", host and NVMe" : "");
  }
};

class G10StepPlanTable : public testing::Test {
 protected:
  void SetUp() override {
    const auto data = shared_data();
    if (!data) GTEST_SKIP() << "no workloads: MEMWALL_SHARED names no folder with data/";
    folder_ = *data / "g10";
  }
  LoadedStep load(const std::string& workload) {
    Scenario scenario;
    scenario.step = {(folder_ / (workload + ".kernels.csv")).string()};
    scenario.machine = "g10-a100-40gb";
    return study_.load(scenario);
  }

  std::filesystem::path folder_;
  Study study_;
};

class G10StepPlans : public G10StepPlanTable, public testing::WithParamInterface<StepPlanCell> {};

struct ReachedCell {
  StepPlan found;
  double seconds = 0;  // by the checker

  double reached() const { return 100 * found.ideal_seconds / seconds; }
  double bound(bool recompute) const { return recompute ? found.joint_bound_seconds : found.moves_bound.seconds; }
};

ReachedCell reach(const StepProfile& profile, const Machine& machine, Bytes budget, bool recompute, bool nvme = false) {
  StepPlanSettings settings;
  settings.recompute = recompute;
  if (nvme) settings.tiers.push_back("nvme");
  ReachedCell cell{plan_step(profile, budget, settings)};
  if (!cell.found.fits) return cell;
  const ReplayedTurns replayed =
      replay_turns(turn_of(profile, cell.found.plan), links_of_machine(machine, settings.tiers));
  EXPECT_EQ(replayed.faults, std::vector<std::string>{});
  EXPECT_LE(replayed.highest, budget);
  EXPECT_NEAR(replayed.seconds, cell.found.seconds, 1e-3 * cell.found.seconds)
      << "the checker and the planner's replay";
  cell.seconds = replayed.seconds;
  EXPECT_GE(cell.seconds, cell.bound(recompute) * (1 - 1e-9)) << "no plan is faster than its bound";
  return cell;
}

TEST_P(G10StepPlans, ReachWhatIsKnownToBePossible) {
  const StepPlanCell& cell = GetParam();
  const LoadedStep step = load(cell.workload);
  const StepProfile profile(*step.trace, *step.machine);
  const ReachedCell found = reach(profile, *step.machine, GiB(cell.gibibytes), cell.recompute, cell.nvme);
  ASSERT_TRUE(found.found.fits);
  EXPECT_GE(found.reached(), cell.least);
  EXPECT_GE(found.bound(cell.recompute) / found.seconds, cell.recompute ? 0.98 : 0.985);
  if (cell.bound >= 0) {
    EXPECT_NEAR(100 * found.found.ideal_seconds / found.bound(false), cell.bound, 0.1);
  }
}

// The columns of one budget: what is reached and what the bound allows, of the ideal.
std::string cells_of(const StepProfile& profile, const Machine& machine, Bytes budget) {
  std::string text;
  for (const bool recompute : {false, true}) {
    const ReachedCell cell = reach(profile, machine, budget, recompute);
    if (!cell.found.fits) {
      text += cell.found.moves_bound.feasible ? " none found | |" : " impossible | |";
      continue;
    }
    const double bound = cell.bound(recompute);
    text += fmt::format(" {:.2f} % | {:.2f} % |", cell.reached(), 100 * cell.found.ideal_seconds / bound);
    EXPECT_GE(bound / cell.seconds, recompute ? 0.98 : 0.985) << text;
  }
  return text + "\n";
}

TEST_F(G10StepPlanTable, OfTheDocumentationIsTrue) {
  std::string expected =
      "| workload | memory | moves only | its bound | moves and re-runs | its bound |\n|---|---|---:|---:|---:|---:|\n";
  for (const char* workload :
       {"BERT-128", "BERT-256", "BERT-512", "VIT-1024", "Inceptionv3-512", "ResNet152-256", "ResNet152-512"}) {
    const LoadedStep step = load(workload);
    const StepProfile profile(*step.trace, *step.machine);
    for (const int gibibytes : {40, 32, 24, 20, 16, 12})
      expected +=
          fmt::format("| {} | {} GiB |", workload, gibibytes) + cells_of(profile, *step.machine, GiB(gibibytes));
  }
  const std::filesystem::path page = std::filesystem::path(MEMWALL_SOURCE) / "docs/planning.md";
  std::stringstream text;
  text << std::ifstream(page).rdbuf();
  std::string document = text.str();
  const std::string begin = "<!-- planning on G10's workloads -->\n", end = "<!-- end planning -->";
  const std::size_t first = document.find(begin) + begin.size(), last = document.find(end);
  ASSERT_LE(first, last);
  if (std::getenv("MEMWALL_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(page) << document.replace(first, last - first, expected);
    return;
  }
  EXPECT_EQ(document.substr(first, last - first), expected);
}

INSTANTIATE_TEST_SUITE_P(
    Cells, G10StepPlans,
    testing::Values(StepPlanCell{"BERT-128", 40, false, 99.5}, StepPlanCell{"BERT-256", 40, false, 99.5},
                    StepPlanCell{"VIT-1024", 40, false, 99.5}, StepPlanCell{"BERT-512", 40, false, 96.9, 97.46},
                    StepPlanCell{"Inceptionv3-512", 40, false, 99.9}, StepPlanCell{"ResNet152-256", 40, false, 99.9},
                    StepPlanCell{"ResNet152-512", 40, false, 99.9}, StepPlanCell{"BERT-512", 20, false, 0, 85.86},
                    StepPlanCell{"BERT-256", 16, false, 0, 96.02}, StepPlanCell{"BERT-512", 40, true, 99.5},
                    StepPlanCell{"BERT-512", 20, true, 97.8}, StepPlanCell{"BERT-256", 16, true, 99.3},
                    // More has to be away than the host's 128 GB hold, sizes rounded up.
                    StepPlanCell{"ResNet152-512", 16, false, 99.9, -1, true},
                    StepPlanCell{"ResNet152-512", 12, false, 99.9, -1, true}));

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
