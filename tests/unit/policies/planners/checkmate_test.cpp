// Does the plan of the integer program keep to its budget, run again no more than rotor's, and say what is proved?
#include <gtest/gtest.h>

#include "policies/solver/linear_program.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/races.h"
#include "tests/support/rewrite_checks.h"
#include "tests/support/step_program.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

constexpr Bytes kPart = 16 << 20;  // more than the allocator puts together in one segment

class CheckmateTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!LinearProgram::is_available()) GTEST_SKIP() << LinearProgram::missing();
  }
};

// Layers of four parts: three for their own backward, and an output. The second takes ten times as long.
Trace uneven_layers(std::size_t n, std::size_t communicates = 1000) {
  StepProgram p;
  StorageId x = p.preexisting(kPart, StorageKind::input, "x");
  std::vector<StorageId> inner, inputs;
  for (std::size_t k = 0; k < n; ++k) {
    p.module("layers." + std::to_string(k));
    inputs.push_back(x);
    inner.push_back(p.make(3 * kPart, "inner"));
    const StorageId y = p.make(kPart, "y");
    Op change;
    change.duration = microseconds(k == 1 ? 10 : 1);
    if (k == communicates) change.kind = OpKind::collective;
    p.op("layer" + std::to_string(k), {x}, {inner[k], y}, change);
    x = y;
  }
  p.module("");
  p.op("loss", {x}, {});
  p.backward();
  p.drop(x);
  for (std::size_t k = n; k-- > 0;) {
    p.module("layers." + std::to_string(k));
    p.op("layer_backward", {inner[k], inputs[k]}, {});
    p.drop(inner[k]);
    if (k > 0) p.drop(inputs[k]);
  }
  p.module("");
  p.optimizer();
  p.op("update", {}, {});
  return std::move(p).finish();
}

// All of four layers: 16 parts and x. In 13 and x three have to go: the second is dear, and the last one is next, so
// that the first or the third runs again, for 1 us.
TEST_F(CheckmateTest, RunsTheCheapLayerAgain) {
  const Trace step = uneven_layers(4);
  EXPECT_EQ(activation_peak(step), 16 * kPart);
  const Trace after = rewritten(step, "checkmate:budget=224MiB");
  EXPECT_EQ(device_time(after, Phase::recompute), microseconds(1));
  EXPECT_LE(activation_peak(after), 13 * kPart);
  EXPECT_TRUE(has_note(after, "no schedule of these 4 units runs less than 750.0 ns again"))
      << "the relaxation drops three quarters of a layer's four parts";
  EXPECT_TRUE(has_note(after, "this plan runs 1.000 us again"));
  expect_same_contents(step, after);
  EXPECT_EQ(races(after), std::vector<std::string>{});
}

TEST_F(CheckmateTest, RunsNoOpAgainThatCommunicates) {
  const Trace step = uneven_layers(6, 2);
  const Trace after = rewritten(step, "checkmate:budget=272MiB");
  ASSERT_GT(count(after, Phase::recompute), 0u);
  for (const Op& op : after.ops) EXPECT_FALSE(op.phase == Phase::recompute && op.kind == OpKind::collective);
}

TEST_F(CheckmateTest, LeavesWhatFitsAndSaysWhereNothingDoes) {
  const Trace step = uneven_layers(4);
  const Trace same = rewritten(step, "checkmate:budget=640MiB");
  EXPECT_EQ(count(same, Phase::recompute), 0u);
  EXPECT_FALSE(has_note(same, "relaxation"));
  const Trace none = rewritten(step, "checkmate:budget=32MiB");
  EXPECT_TRUE(has_note(none, "no plan was found"));
  EXPECT_TRUE(has_note(none, "no schedule of these 4 units keeps to the budget"));
}

TEST_F(CheckmateTest, KeepsToItsBudgetOnAGpt) {
  const Trace step =
      gpt_step({.layers = 8, .hidden = 512, .heads = 8, .sequence = 512, .batch = 4, .vocabulary = 4096});
  Machine machine = test_machine();
  const Bytes all = simulate(step, machine, {}).tiers.front().peak_reserved;
  for (const char* mode : {"exact", "rounding"}) {
    Duration before{};
    for (const int percent : {100, 80, 65}) {
      const Bytes budget = all * percent / 100;
      const std::string policy =
          "checkmate:search_nodes=20,mode=" + std::string(mode) + ",budget=" + std::to_string(budget);
      const Trace after = rewritten(step, policy);
      ASSERT_FALSE(has_note(after, "no plan was found")) << policy;
      machine.tiers.front().capacity = budget;
      EXPECT_TRUE(simulate(after, machine, {}).fits) << policy;
      EXPECT_GE(device_time(after, Phase::recompute), before) << policy;
      before = device_time(after, Phase::recompute);
      EXPECT_EQ(rewritten(step, policy).ops.size(), after.ops.size()) << "the same each time";
    }
    EXPECT_GT(before, Duration{}) << mode;
  }
}

TEST(CheckmateWithoutSolver, RefusesWithTheNameOfThePackage) {
  if (LinearProgram::is_available()) GTEST_SKIP() << "built with the solver";
  EXPECT_NE(refusal(uneven_layers(4), "checkmate:budget=224MiB").find("coinor-libcbc"), std::string::npos);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
