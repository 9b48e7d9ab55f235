// Are Megatron's options the plans that they name, and is core attention what it is in Megatron?
#include <gtest/gtest.h>

#include "tests/support/gpt_trace.h"
#include "tests/support/policy_plan.h"
#include "tests/support/rewrite_checks.h"
#include "tests/support/sample.h"
#include "tests/support/step_program.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

Trace gpt_of(int layers, bool flash) {
  GptShape shape;
  shape.layers = layers;
  shape.hidden = 64;
  shape.sequence = 32;
  shape.flash_attention = flash;
  return gpt_step(shape);
}

const std::string kFull = "megatron:recompute_granularity=full,recompute_method=";

TEST(Megatron, UniformAndBlockAreCheckpointsOfLayers) {
  for (const Trace& step : {gpt_of(6, false), gpt_of(5, true), sample_gpt_124m()}) {
    EXPECT_EQ(policy_plan(step, kFull + "uniform,recompute_num_layers=2"),
              policy_plan(step, "checkpoint:mode=every,every=2,early_stop=0"));
    EXPECT_EQ(policy_plan(step, kFull + "uniform"), policy_plan(step, "checkpoint:early_stop=0"));
    EXPECT_EQ(policy_plan(step, kFull + "block,recompute_num_layers=3"),
              policy_plan(step, "checkpoint:layers=3,early_stop=0"));
  }
}

TEST(Megatron, ABlockOfMoreLayersThanThereAreIsAll) {
  const Trace step = gpt_of(3, false);
  EXPECT_EQ(policy_plan(step, kFull + "block,recompute_num_layers=9"), policy_plan(step, kFull + "uniform"));
}

// Korthikanti et al. 2022, section 4.1: core attention holds 5 a s^2 b bytes of a layer: softmax 2, mask 1, dropout 2.
TEST(Megatron, SelectiveRunsCoreAttentionAgain) {
  const Trace step = gpt_of(4, false), after = rewritten(step, "megatron");
  const std::vector<std::string> again = rerun_operators(after);
  for (const char* name : {"bmm_scores", "softmax", "native_dropout", "bmm_values"})
    EXPECT_EQ(std::count(again.begin(), again.end(), std::string("aten::") + name), 4)
        << name << ", once in each layer";
  EXPECT_EQ(again.size(), 16u) << "and nothing else";
  constexpr Bytes kScores = 5 * 2 * 32 * 32 * 2;  // heads, sequence, batch
  EXPECT_LE(activation_peak(after), activation_peak(step) - 3 * kScores) << "of all layers but the one in backward";
  expect_same_contents(step, after);
}

TEST(Megatron, SelectiveRunsAnAttentionKernelAgain) {
  const Trace step = gpt_of(4, true);
  const std::vector<std::string> again = rerun_operators(rewritten(step, "megatron"));
  EXPECT_EQ(again, std::vector<std::string>(4, again.front()));
  EXPECT_NE(again.front().find("attention"), std::string::npos) << again.front();
}

// Two layers with a module of that name, in which an addition stands, too.
TEST(Megatron, ModulesThatAreCalledCoreAttentionAreIt) {
  StepProgram p;
  StorageId x = p.preexisting(1024, StorageKind::input, "x");
  std::vector<StorageId> made;
  for (int layer = 0; layer < 2; ++layer) {
    const std::string path = "decoder.layers." + std::to_string(layer) + ".self_attention";
    for (const auto& [module, op] : {std::pair("", "mm"),
                                     {".core_attention", "bmm"},
                                     {".core_attention", "add"},
                                     {".core_attention", "_softmax"},
                                     {".linear_proj", "mm"}}) {
      p.module(path + module);
      made.push_back(p.make(1024, op));
      p.op(op, {x}, {made.back()});
      x = made.back();
    }
  }
  p.module("");
  p.backward();
  for (; !made.empty(); made.pop_back()) {
    p.op("back", {made.back()}, {});
    p.drop(made.back());
  }
  p.optimizer();
  const Trace step = std::move(p).finish();
  EXPECT_EQ(policy_plan(step, "megatron"),
            policy_plan(step, "checkpoint:modules=decoder.layers.*.self_attention.core_attention,early_stop=0"));
  EXPECT_EQ(rerun_operators(rewritten(step, "megatron")).front(), "aten::bmm");
}

TEST(Megatron, WithoutAttentionItIsRefused) {
  StepProgram p;
  const StorageId w = p.preexisting(1024, StorageKind::parameter, "w"), a = p.make(1024, "a");
  p.op("bmm", {w}, {a});  // a batched product alone is no attention
  p.backward();
  p.op("back", {a}, {});
  p.drop(a);
  const Trace step = std::move(p).finish();
  EXPECT_NE(refusal(step, "megatron").find("finds no core attention"), std::string::npos);
}

TEST(Megatron, OptionsThatMegatronRefusesAreRefused) {
  const Trace step = gpt_of(2, false);
  EXPECT_NE(refusal(step, "megatron:recompute_granularity=full").find("needs recompute_method=uniform or block"),
            std::string::npos);
  EXPECT_NE(refusal(step, "megatron:recompute_num_layers=2").find("has a meaning with recompute_granularity=full"),
            std::string::npos);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
