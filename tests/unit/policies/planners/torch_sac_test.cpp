// Are the results kept that take longest and fit? On blocks of a few ops whose best choice is known by hand.
#include <gtest/gtest.h>

#include "policies/plan/plan_check.h"
#include "policies/planners/planner.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/rewrite_checks.h"
#include "tests/support/step_program.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

constexpr Bytes kUnit = 1024;

struct BlockOp {
  std::string name;
  int microseconds = 1, units = 1;
};

// Two blocks of these ops in a row; backward reads every result but that of the last op, and that, too, in the head.
Trace blocks(const std::vector<BlockOp>& ops) {
  StepProgram p;
  const StorageId x = p.preexisting(kUnit, StorageKind::input, "x");
  std::vector<std::vector<StorageId>> made(2);
  StorageId last = x;
  for (std::size_t block = 0; block < 2; ++block) {
    p.module("layers." + std::to_string(block));
    for (const BlockOp& op : ops) {
      made[block].push_back(p.make(op.units * kUnit, op.name));
      Op time;
      time.duration = microseconds(op.microseconds);
      p.op(op.name, {last}, {made[block].back()}, time);
      last = made[block].back();
    }
  }
  p.module("head");
  p.op("loss", {last}, {});
  p.backward();
  for (std::size_t block = 2; block-- > 0;) {
    for (std::size_t i = ops.size(); i-- > 0;) {
      p.module(i + 1 == ops.size() ? "head" : "layers." + std::to_string(block));
      p.op("back", {made[block][i]}, {});
      p.drop(made[block][i]);
    }
  }
  p.module("");
  p.optimizer();
  p.op("update", {}, {});
  return std::move(p).finish();
}

// Of one block.
std::vector<std::string> run_again(const Trace& step, const std::string& policy) {
  const Trace after = rewritten(step, policy);
  EXPECT_EQ(check(after), std::vector<std::string>{});
  std::vector<std::string> names = rerun_operators(after);
  EXPECT_EQ(names.size() % 2, 0u);
  names.resize(names.size() / 2);
  return names;
}

using Operators = std::vector<std::string>;

// 9 KiB count. With 5 of them both products are kept; by bytes per second gelu goes first, and then nothing more.
const std::vector<BlockOp> kFeedForward = {{"mm", 10, 4}, {"gelu", 1, 4}, {"addmm", 8, 1}, {"add", 1, 3}};

TEST(TorchSac, KeepsWhatTakesLongest) {
  EXPECT_EQ(run_again(blocks(kFeedForward), "torch_sac:memory_budget=0.56"), Operators{"aten::gelu"});
  EXPECT_EQ(run_again(blocks(kFeedForward), "torch_sac:memory_budget=0.56,solver=greedy"), Operators{"aten::gelu"});
  // 1 of 9 KiB: addmm stays, and the last result, which counts nothing.
  EXPECT_EQ(run_again(blocks(kFeedForward), "torch_sac:memory_budget=0.12"), (Operators{"aten::mm", "aten::gelu"}));
}

TEST(TorchSac, TheKnapsackFindsWhatGreedyMisses) {
  // 12 KiB, of which 8 may stay. By bytes per second a (6 KiB in 9 us) goes first, then b and c fit: 8 us are kept. The
  // best choice keeps a and gives up both: 9 us.
  const std::vector<BlockOp> ops = {{"a", 9, 6}, {"b", 4, 3}, {"c", 4, 3}, {"last", 1, 1}};
  EXPECT_EQ(run_again(blocks(ops), "torch_sac:memory_budget=0.6666"), (Operators{"aten::b", "aten::c"}));
  const std::vector<BlockOp> other = {{"a", 8, 6}, {"b", 4, 3}, {"c", 5, 4}, {"last", 1, 1}};
  // 13 KiB, of which 7 may stay: bytes per second are 0.75, 0.75 and 0.8. Greedy runs c and a again, the knapsack a.
  EXPECT_EQ(run_again(blocks(other), "torch_sac:memory_budget=0.5384,solver=greedy"),
            (Operators{"aten::a", "aten::c"}));
  EXPECT_EQ(run_again(blocks(other), "torch_sac:memory_budget=0.5384"), Operators{"aten::a"});
}

TEST(TorchSac, RandomOpsAreKeptAllOrNone) {
  const std::vector<BlockOp> ops = {{"native_dropout", 5, 1}, {"mm", 2, 2}, {"native_dropout", 5, 4}, {"last", 1, 1}};
  // 7 KiB: with 3 of them the first dropout and the product would fit, but not both dropouts.
  EXPECT_EQ(run_again(blocks(ops), "torch_sac:memory_budget=0.42"),
            (Operators{"aten::native_dropout", "aten::native_dropout"}));
  EXPECT_EQ(run_again(blocks(ops), "torch_sac:memory_budget=0.72"), Operators{"aten::mm"});
}

TEST(TorchSac, AllIsKeptOfAShareOfOneAndZeroIsCheckpointing) {
  EXPECT_TRUE(run_again(blocks(kFeedForward), "torch_sac:memory_budget=1").empty());
  GptShape shape;
  shape.hidden = 64;
  const Trace gpt = gpt_step(shape);
  const Trace after = rewritten(gpt, "torch_sac:memory_budget=0"), full = rewritten(gpt, "checkpoint");
  EXPECT_LE(count(after, Phase::recompute), count(full, Phase::recompute));
  EXPECT_LT(activation_peak(after), activation_peak(gpt));
  expect_same_contents(gpt, after);
}

TEST(TorchSac, WithoutAShareTheLargestThatKeepsToTheBudgetIsTaken) {
  GptShape shape;
  shape.layers = 8;
  shape.hidden = 256;
  shape.sequence = 512;
  shape.heads = 4;
  const Trace gpt = gpt_step(shape);
  const Bytes peak = simulated(gpt).tiers[0].peak_allocated;
  Duration before{};
  for (const int percent : {90, 80, 70}) {
    const Bytes budget = peak * percent / 100;
    const Trace after = rewritten(gpt, "torch_sac:budget=" + std::to_string(budget));
    EXPECT_LE(simulated(after).tiers[0].peak_allocated, budget) << percent;
    EXPECT_GT(device_time(after, Phase::recompute), before) << "less memory, more work";
    before = device_time(after, Phase::recompute);
    expect_same_contents(gpt, after);
  }
  EXPECT_TRUE(has_note(rewritten(gpt, "torch_sac:budget=2MiB"), "no plan was found that keeps to it"));
}

TEST(TorchSac, ModulesThatAreNamedMustBeThere) {
  EXPECT_NE(refusal(blocks(kFeedForward), "torch_sac:memory_budget=0.5,modules=stages.*").find("matches no forward op"),
            std::string::npos);
  EXPECT_EQ(run_again(blocks(kFeedForward), "torch_sac:modules=layers.*,memory_budget=0.56"), Operators{"aten::gelu"});
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
