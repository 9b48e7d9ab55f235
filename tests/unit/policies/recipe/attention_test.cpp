// A step with another kernel of attention is the step of the program with that kernel, op by op.
#include <gtest/gtest.h>

#include "sim/trace/trace_check.h"
#include "tests/support/kernel_lines.h"
#include "tests/support/recipe_checks.h"
#include "tests/support/rewrite_checks.h"
#include "tests/support/small_networks.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

struct Setting {
  const char* policy;
  Attention attention;
};

const std::vector<Setting> kSettings = {{"attention:flash", Attention::flash},
                                        {"attention:efficient", Attention::memory_efficient},
                                        {"attention:cudnn", Attention::cudnn}};

Recipe recipe(Precision precision, Attention attention) {
  Recipe r;
  r.batch = 2;
  r.precision = precision;
  r.attention = attention;
  return r;
}

bool has_attention(const SmallNetwork& network) { return network.name != std::string("resnet"); }
bool shares_heads(const SmallNetwork& network) { return network.name == std::string("llama"); }

TEST(AttentionRecipe, IsWhatTheGeneratorWritesWithThatKernel) {
  for (const SmallNetwork& network : small_networks()) {
    if (!has_attention(network)) continue;
    for (const Precision precision : {Precision::amp_bf16, Precision::bf16})
      for (const Setting& from : kSettings)
        for (const Setting& to : kSettings) {
          if (to.attention == Attention::memory_efficient && shares_heads(network)) continue;
          SCOPED_TRACE(std::string(network.name) + " from " + from.policy + " to " + to.policy);
          const Trace after =
              recipe_rewritten(modelled_step(network.model, recipe(precision, from.attention)), to.policy);
          EXPECT_EQ(check(after), std::vector<std::string>{});
          EXPECT_EQ(step_difference(after, modelled_step(network.model, recipe(precision, to.attention))), "");
        }
  }
}

// On the GPUs that they are written for; on others they are refused by name.
TEST(AttentionRecipe, KernelsOfOneGenerationRunThere) {
  struct Generation {
    Setting setting;
    const char* machine;
    const char* other;
  };
  const Model model = small_networks().front().model;
  const Recipe from = recipe(Precision::bf16, Attention::flash);
  for (const auto& [to, machine, other] :
       {Generation{{"attention:flash3", Attention::flash3}, "h100-sxm-80gb", "a100-sxm-80gb"},
        Generation{{"attention:flash4", Attention::flash4}, "b200-sxm-180gb", "h100-sxm-80gb"}}) {
    SCOPED_TRACE(to.policy);
    EXPECT_EQ(step_difference(recipe_rewritten(modelled_step(model, from, machine), to.policy, machine),
                              modelled_step(model, recipe(Precision::bf16, to.attention), machine)),
              "");
    for (const char* const where : {other, "v100-sxm2-32gb", "mi300x"}) {  // the last two price no fused kernels
      SCOPED_TRACE(where);
      try {
        recipe_rewritten(modelled_step(model, from, where), to.policy, where);
        ADD_FAILURE() << "it ran on another GPU";
      } catch (const UsageError& e) {
        EXPECT_NE(std::string(e.what()).find(to.attention == Attention::flash3 ? "is written for Hopper GPUs"
                                                                               : "is written for Blackwell GPUs"),
                  std::string::npos)
            << e.what();
      }
    }
  }
}

// Scores in memory are put together: the products, the mask and softmax between them, what copies them, and their
// backward.
TEST(AttentionRecipe, PutsScoresInMemoryTogetherAsTheGeneratorWritesIt) {
  for (const SmallNetwork& network : small_networks()) {
    if (!has_attention(network) || shares_heads(network)) continue;
    for (const double dropout : {0.0, 0.1})
      for (const Precision precision : {Precision::amp_bf16, Precision::bf16})
        for (const Setting& to : kSettings) {
          SCOPED_TRACE(std::string(network.name) + " " + to.policy + " dropout " + std::to_string(dropout));
          Model model = network.model;
          model.dropout = dropout;
          const Trace after = recipe_rewritten(modelled_step(model, recipe(precision, Attention::plain)), to.policy);
          EXPECT_EQ(check(after), std::vector<std::string>{});
          EXPECT_EQ(kernel_difference(after, modelled_step(model, recipe(precision, to.attention))), "");
        }
  }
}

// Queries, keys and values that one product reads as parts of one storage: a batch of one.
TEST(AttentionRecipe, OneSequenceNeedsNoCopies) {
  const Model model = small_networks().front().model;
  Recipe from = recipe(Precision::bf16, Attention::plain), to = recipe(Precision::bf16, Attention::flash);
  from.batch = to.batch = 1;
  const Trace after = recipe_rewritten(modelled_step(model, from), "attention:flash");
  EXPECT_EQ(check(after), std::vector<std::string>{});
  EXPECT_EQ(kernel_difference(after, modelled_step(model, to)), "");
}

// A gradient of the keys of the first layer that nobody asks for: the chain is not whole, and none is put together.
TEST(AttentionRecipe, WhatIsNotWholeIsRefused) {
  Model model = small_rotary_decoder();
  model.key_value_heads = model.heads;
  Recipe r = recipe(Precision::bf16, Attention::plain);
  r.lora_rank = 8;
  EXPECT_NE(refusal(modelled_step(model, r), "attention:flash").find("the backward is not whole"), std::string::npos);
}

// A difference that remains: keys that are rotated come back in another layout, which their layer's backward copies
// where the scores were in memory. Where the two agree, the line about it in docs/limits.md can go.
TEST(AttentionRecipe, RotatedKeysAreCopiedInBackward) {
  Model model = small_rotary_decoder();
  model.key_value_heads = model.heads;
  const Trace before = modelled_step(model, recipe(Precision::bf16, Attention::plain));
  const Trace after = recipe_rewritten(before, "attention:flash");
  EXPECT_EQ(check(after), std::vector<std::string>{});
  EXPECT_EQ(kernel_count_difference(after, modelled_step(model, recipe(Precision::bf16, Attention::flash))),
            "backward aten::clone bf16 +4");
}

TEST(AttentionRecipe, WhatTheKernelDoesNotTakeIsRefused) {
  const std::vector<SmallNetwork> networks = small_networks();
  const Trace gpt = modelled_step(networks[0].model, recipe(Precision::fp32, Attention::memory_efficient));
  EXPECT_NE(refusal(gpt, "attention:flash").find("expected fp16 or bf16"), std::string::npos);
  const Trace llama = modelled_step(networks[1].model, recipe(Precision::bf16, Attention::flash));
  EXPECT_NE(refusal(llama, "attention:efficient").find("4 heads of queries and 2 of keys"), std::string::npos);
  EXPECT_NE(refusal(gpt, "attention:flash,dropout=1").find("means nothing"), std::string::npos);
  Recipe compiled = recipe(Precision::bf16, Attention::flash);
  compiled.execution = ExecutionMode::compiled;
  EXPECT_NE(refusal(modelled_step(networks[0].model, compiled), "attention:math").find("is called by compiled code"),
            std::string::npos);
  const Trace plain = modelled_step(networks[0].model, recipe(Precision::bf16, Attention::plain));
  EXPECT_NE(refusal(plain, "attention:math").find("in memory already"), std::string::npos);
  const Trace resnet = modelled_step(networks[4].model, recipe(Precision::bf16, Attention::flash));
  EXPECT_NE(refusal(resnet, "attention:flash").find("finds no attention"), std::string::npos);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
