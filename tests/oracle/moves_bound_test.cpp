// Is the closed form of the bound (policies/cycle/moves_bound.h) as sharp as a linear program of the same relaxation
// (tests/support/flow_program.h), and are its prices those of the program and of finite differences? On the workloads that
// G10 publishes.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <functional>

#include "policies/cycle/cycle_of_step.h"
#include "policies/cycle/moves_bound.h"
#include "policies/cycle/plan_certificate.h"
#include "policies/cycle/profile_cycle.h"
#include "study/study.h"
#include "tests/support/flow_program.h"
#include "tests/support/shared_data.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

struct BoundCell {
  const char* workload;
  int gibibytes;
  double within = 0;  // percent of the ideal step between the closed form and the program
  friend void PrintTo(const BoundCell& cell, std::ostream* out) { *out << cell.workload << " at " << cell.gibibytes << " GiB"; }
};

LoadedStep g10_step(Study& study, const std::filesystem::path& data, const BoundCell& cell) {
  Scenario scenario;
  scenario.step = {(data / "g10" / (std::string(cell.workload) + ".kernels.csv")).string()};
  scenario.machine = "g10-a100-40gb";
  return study.load(scenario);
}

class G10MovesBound : public testing::TestWithParam<BoundCell> {
 protected:
  void SetUp() override {
    const auto data = shared_data();
    if (!data) GTEST_SKIP() << "no workloads: MEMWALL_SHARED names no folder with data/";
    Study study;
    const LoadedStep step = g10_step(study, *data, GetParam());
    cycle_.emplace(cycle_of_step(StepProfile(*step.trace, *step.machine)).program);
    links_ = links_of_machine(*step.machine, {"host"});
    budget_ = GiB(GetParam().gibibytes);
  }

  std::optional<StepCycle> cycle_;
  CycleLinks links_;
  Bytes budget_ = 0;
};

TEST_P(G10MovesBound, IsThatOfTheLinearProgram) {
  if (!LinearProgram::is_available()) GTEST_SKIP() << "A linear program needs " << LinearProgram::missing() << ".";
  const auto begin = std::chrono::steady_clock::now();
  const MovesBound closed = moves_bound(*cycle_, links_, budget_);
  const auto between = std::chrono::steady_clock::now();
  // Slots at which windows begin and end are among those that the program looks at: it is no weaker then.
  constexpr std::size_t kParts = 48;
  std::vector<std::uint32_t> slots = highest_slots(*cycle_, kParts);
  const auto turn = static_cast<std::int64_t>(cycle_->size());
  for (const BindingWindow& window : closed.windows) {
    slots.push_back(window.peak);
    for (const std::int64_t at : {window.from, window.to}) slots.push_back(static_cast<std::uint32_t>(((at % turn) + turn) % turn));
  }
  std::sort(slots.begin(), slots.end());
  slots.erase(std::unique(slots.begin(), slots.end()), slots.end());
  const FlowBound program = flow_bound(*cycle_, links_, budget_, slots);
  const auto end = std::chrono::steady_clock::now();
  ASSERT_EQ(program.status, SolverStatus::optimal);
  const auto percent = [&](double seconds) { return 100 * closed.ideal_seconds / seconds; };
  fmt::print("{} at {} GiB: {:.3f} % of the ideal in closed form ({:.1f} ms), {:.3f} % by the program ({} columns, {:.1f} s); "
             "a GB is worth {:.5f} s, {:.5f} s\n",
             GetParam().workload, GetParam().gibibytes, percent(closed.seconds),
             1e3 * std::chrono::duration<double>(between - begin).count(), percent(program.seconds), program.columns,
             std::chrono::duration<double>(end - between).count(), -closed.per_byte * 1e9, -program.per_byte * 1e9);
  EXPECT_GE(program.seconds, closed.seconds * (1 - 1e-6));
  EXPECT_LE(percent(closed.seconds) - percent(program.seconds), GetParam().within);
}

// The step is short enough that the same windows bind on both sides of it.
TEST_P(G10MovesBound, HasThePricesOfFiniteDifferences) {
  const MovesBound bound = moves_bound(*cycle_, links_, budget_);
  if (bound.windows.empty()) return;
  constexpr double kPart = 1e-5;
  const auto expect = [&](const char* what, double price, double step, double less, double more) {
    const double slope = (more - less) / (2 * step);
    EXPECT_NEAR(price, slope, 0.01 * std::abs(slope) + 1e-15) << what;
  };
  const auto bytes = static_cast<Bytes>(kPart * static_cast<double>(budget_));
  expect("a byte of memory", bound.per_byte, static_cast<double>(bytes), moves_bound(*cycle_, links_, budget_ - bytes).seconds,
         moves_bound(*cycle_, links_, budget_ + bytes).seconds);
  for (const bool out : {true, false}) {
    const auto with = [&](double factor) {
      CycleLinks links = links_;
      (out ? links.total_out : links.total_in) *= factor;
      return moves_bound(*cycle_, links, budget_).seconds;
    };
    expect(out ? "the rate out" : "the rate in", out ? bound.per_out_rate : bound.per_in_rate,
           kPart * (out ? links_.total_out : links_.total_in), with(1 - kPart), with(1 + kPart));
  }
}

class G10JointPrices : public testing::TestWithParam<BoundCell> {};

// Of the certificate, as it is printed: with a little more and with a little less of it.
TEST_P(G10JointPrices, AreThoseOfFiniteDifferences) {
  const auto data = shared_data();
  if (!data) GTEST_SKIP() << "no workloads: MEMWALL_SHARED names no folder with data/";
  Study study;
  const LoadedStep step = g10_step(study, *data, GetParam());
  const StepProfile profile(*step.trace, *step.machine);
  const CycleLinks links = links_of_machine(*step.machine, {"host"});
  const Bytes budget = GiB(GetParam().gibibytes);
  const PlanCertificate c = plan_certificate(profile, budget, links);
  constexpr double kPart = 1e-5, kWithin = 0.01, kGigabyte = 1e9;
  // `with`: the bound with so many times as much. A price at a kink lies between the slopes on both sides of it.
  const auto expect = [&](const char* what, double price, double all, const std::function<double(double)>& with) {
    const double here = with(1), unit = kGigabyte / (kPart * all);
    const double more = (here - with(1 + kPart)) * unit, less = (with(1 - kPart) - here) * unit;
    fmt::print("{} at {} GiB: {} is worth {:.6g} s; differences {:.6g} s, {:.6g} s\n", GetParam().workload,
               GetParam().gibibytes, what, price, more, less);
    EXPECT_GE(price, std::min(more, less) * (1 - kWithin) - 1e-9) << what;
    EXPECT_LE(price, std::max(more, less) * (1 + kWithin) + 1e-9) << what;
  };
  const auto joint = [&](Bytes bytes, const CycleLinks& changed) {
    return plan_certificate(profile, bytes, changed).joint_seconds;
  };
  expect("a GB", c.joint_per_gigabyte, static_cast<double>(budget), [&](double factor) {
    return joint(static_cast<Bytes>(std::llround(static_cast<double>(budget) * factor)), links);
  });
  for (const bool out : {true, false})
    expect(out ? "a GB/s out" : "a GB/s in", out ? c.joint_per_out_rate : c.joint_per_in_rate,
           out ? links.total_out : links.total_in, [&](double factor) {
             CycleLinks changed = links;
             (out ? changed.total_out : changed.total_in) *= factor;
             return joint(budget, changed);
           });
  expect("a GB/s both ways", c.joint_per_rate, links.total_out, [&](double factor) {
    CycleLinks changed = links;
    changed.total_out += links.total_out * (factor - 1), changed.total_in += links.total_out * (factor - 1);
    return joint(budget, changed);
  });
}

INSTANTIATE_TEST_SUITE_P(Cells, G10JointPrices,
                         testing::Values(BoundCell{"BERT-128", 12}, BoundCell{"BERT-256", 16},
                                         BoundCell{"BERT-256", 12}, BoundCell{"BERT-512", 40},
                                         BoundCell{"BERT-512", 24}, BoundCell{"BERT-512", 20},
                                         BoundCell{"BERT-512", 16}, BoundCell{"BERT-512", 12},
                                         BoundCell{"VIT-1024", 24}, BoundCell{"VIT-1024", 20},
                                         BoundCell{"VIT-1024", 16}, BoundCell{"VIT-1024", 12},
                                         BoundCell{"Inceptionv3-512", 12}, BoundCell{"ResNet152-512", 12}));

INSTANTIATE_TEST_SUITE_P(Cells, G10MovesBound,
                         testing::Values(BoundCell{"BERT-128", 40, 0.1}, BoundCell{"BERT-256", 40, 0.1},
                                         BoundCell{"BERT-512", 40, 0.1}, BoundCell{"VIT-1024", 40, 0.1},
                                         BoundCell{"Inceptionv3-512", 40, 0.1}, BoundCell{"ResNet152-256", 40, 0.1},
                                         BoundCell{"ResNet152-512", 40, 0.1}, BoundCell{"BERT-512", 20, 0.1},
                                         BoundCell{"BERT-256", 16, 0.1}));

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
