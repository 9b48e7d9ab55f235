// Are torchtitan's options the plans that they name, and does every second product run again?
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/gpt_trace.h"
#include "tests/support/policy_plan.h"
#include "tests/support/rewrite_checks.h"
#include "tests/support/sample.h"
#include "tests/support/step_program.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

struct TitanOp {
  std::string name, module{};
};

// Two blocks of these ops in a row; backward reads every result.
Trace titan_blocks(const std::vector<TitanOp>& ops) {
  StepProgram p;
  StorageId x = p.preexisting(1024, StorageKind::input, "x");
  std::vector<StorageId> made;
  for (int block = 0; block < 2; ++block)
    for (const TitanOp& op : ops) {
      p.module("layers." + std::to_string(block) + op.module);
      made.push_back(p.make(1024, op.name));
      p.op(op.name, {x}, {made.back()});
      x = made.back();
    }
  p.module("");
  p.op("loss", {x}, {});
  p.backward();
  for (; !made.empty(); made.pop_back()) {
    p.op("back", {made.back()}, {});
    p.drop(made.back());
  }
  p.optimizer();
  return std::move(p).finish();
}

// Of the second block, which runs first.
std::vector<std::string> again_of_a_block(const std::vector<TitanOp>& ops) {
  const Trace step = titan_blocks(ops), after = rewritten(step, "torchtitan");
  expect_same_contents(step, after);
  std::vector<std::string> names = rerun_operators(after);
  EXPECT_EQ(names.size() % 2, 0u);
  names.resize(names.size() / 2);
  return names;
}

using Operators = std::vector<std::string>;

TEST(Torchtitan, FullIsCheckpointToItsEnd) {
  GptShape shape;
  shape.layers = 4;
  for (const Trace& step : {gpt_step(shape), sample_gpt_124m()}) {
    EXPECT_EQ(policy_plan(step, "torchtitan:mode=full"), policy_plan(step, "checkpoint:early_stop=0"));
    EXPECT_EQ(policy_plan(step, "torchtitan:mode=full,early_stop=1"), policy_plan(step, "checkpoint"));
  }
}

// As `checkpoint` says it of the same blocks; of every second one half as many.
TEST(Torchtitan, SaysThatBlocksAreCompiled) {
  GptShape shape;
  shape.layers = 4;
  Trace step = gpt_step(shape);
  const auto says = [](const Trace& t, const std::string& note) {
    return std::ranges::any_of(t.notes, [&](const std::string& n) { return n.find(note) != std::string::npos; });
  };
  EXPECT_FALSE(says(rewritten(step, "torchtitan:mode=full"), "compiled"));
  for (Op& op : step.ops)
    if (op.kind == OpKind::kernel) op.dispatch = Dispatch::compiled;
  for (const char* policy : {"torchtitan:mode=full", "torchtitan", "checkpoint",
                             "megatron:recompute_granularity=full,recompute_method=uniform"})
    EXPECT_TRUE(says(rewritten(step, policy), "4 units are compiled: computed again is what backward needs")) << policy;
  EXPECT_TRUE(says(rewritten(step, "torchtitan:selective_ac_option=2"), "2 units are compiled"));
}

TEST(Torchtitan, EveryNthBlock) {
  GptShape shape;
  shape.layers = 8;
  const Trace step = gpt_step(shape);
  EXPECT_EQ(policy_plan(step, "torchtitan:selective_ac_option=2"),
            policy_plan(step, "checkpoint:spread=even,fraction=0.5,early_stop=0"));
  EXPECT_EQ(policy_plan(step, "torchtitan:selective_ac_option=3"),
            policy_plan(step, "checkpoint:modules=layers.2+layers.5,early_stop=0"));
  const Trace none = rewritten(step, "torchtitan:selective_ac_option=9");
  EXPECT_EQ(none.ops.size(), step.ops.size());
}

TEST(Torchtitan, EverySecondProductRunsAgain) {
  EXPECT_EQ(again_of_a_block({{"mm"},
                              {"mul"},
                              {"mm"},
                              {"_scaled_dot_product_flash_attention"},
                              {"mm"},
                              {"silu"},
                              {"mm"},
                              {"add"},
                              {"topk"},
                              {"neg"}}),
            (Operators{"aten::mul", "aten::mm", "aten::silu", "aten::mm", "aten::add", "aten::neg"}));
}

// The policy sees torchao's mm of Float8Tensors.
TEST(Torchtitan, InFp8EverySecondProductRunsAgainToo) {
  EXPECT_EQ(again_of_a_block({{"_scaled_mm"}, {"mul"}, {"_scaled_mm"}, {"_scaled_mm"}, {"neg"}}),
            (Operators{"aten::mul", "aten::_scaled_mm", "aten::neg"}));
}

TEST(Torchtitan, TheRoutersProductIsNotCounted) {
  EXPECT_EQ(again_of_a_block({{"mm"}, {"mm", ".moe.router.gate"}, {"mm"}, {"mm"}, {"neg"}}),
            (Operators{"aten::mm", "aten::mm", "aten::neg"}))
      << "the gate's, and the second of the others; the third is kept";
}

TEST(Torchtitan, WithOneProductItIsSelective) {
  const Trace step = titan_blocks({{"mul"}, {"mm"}, {"silu"}, {"_scaled_dot_product_flash_attention"}, {"add"}});
  EXPECT_EQ(policy_plan(step, "torchtitan"), policy_plan(step, "selective:save=mm+sdpa,early_stop=0"));
}

TEST(Torchtitan, LessMemoryThanWithoutItAndMoreThanFull) {
  const Trace step = sample_gpt_124m();
  const Bytes op = activation_peak(rewritten(step, "torchtitan"));
  EXPECT_LT(op, activation_peak(step));
  EXPECT_GT(op, activation_peak(rewritten(step, "torchtitan:mode=full")));
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
