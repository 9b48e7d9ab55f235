// Pruned weights: what is multiplied, what lives, what stays as it was; captures of PyTorch's own are in tests/oracle.
#include <gtest/gtest.h>

#include "sim/trace/repeat.h"
#include "sim/trace/trace_check.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/recipe_checks.h"
#include "tests/support/rewrite_checks.h"
#include "tests/support/small_networks.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

struct Products {
  std::size_t layers = 0;  // of forward
  double flops = 0;
  bool operator==(const Products&) const = default;
};

Products products(const Trace& t) {
  Products all;
  for (const Op& op : t.ops) {
    if (op.operator_class != OperatorClass::gemm && op.operator_class != OperatorClass::convolution) continue;
    all.layers += op.phase == Phase::forward ? 1 : 0;
    all.flops += op.flops;
  }
  return all;
}

Bytes masks(const Trace& t) {
  Bytes bytes = 0;
  for (const Storage& s : t.storages) bytes += t.strings[s.label].ends_with("_mask") ? s.bytes : 0;
  return bytes;
}

TEST(PruneRecipe, EachLayersWeightIsMultipliedForwardAndItsGradientBackward) {
  for (const SmallNetwork& network : small_networks())
    for (const Precision precision : {Precision::bf16, Precision::fp32, Precision::amp_bf16}) {
      SCOPED_TRACE(network.name);
      const Trace before = modelled_step(network.model, recipe_in(precision)),
                  after = recipe_rewritten(before, "prune");
      EXPECT_EQ(check(after), std::vector<std::string>{});
      const std::size_t layers = products(before).layers;
      EXPECT_EQ(products(after), products(before));
      EXPECT_EQ(count(after, Phase::forward), count(before, Phase::forward) + layers);
      EXPECT_EQ(count(after, Phase::backward), count(before, Phase::backward) + layers);
      EXPECT_EQ(count(after, Phase::optimizer), count(before, Phase::optimizer));
      EXPECT_EQ(live_bytes(after, StorageKind::gradient).back(), live_bytes(before, StorageKind::gradient).back());
      EXPECT_GT(masks(after), 0);
      EXPECT_GT(simulated(after).end, simulated(before).end);  // pruning alone saves nothing
    }
}

// Mask and product of each layer are there throughout.
TEST(PruneRecipe, MasksAndProductsLiveFromStepToStep) {
  const Trace before = modelled_step(small_networks()[1].model, recipe_in(Precision::bf16));
  const Trace after = recipe_rewritten(before, "prune");
  const auto at_start = [](const Trace& t) {
    Bytes bytes = 0;
    for (const Storage& s : t.storages) bytes += s.preexisting ? s.bytes : 0;
    return bytes;
  };
  EXPECT_EQ(at_start(after), at_start(before) + 2 * masks(after));
  const Trace two = recipe_rewritten(repeated(before, 2), "prune");
  EXPECT_EQ(check(two), std::vector<std::string>{});
  EXPECT_EQ(at_start(two), at_start(after));
}

TEST(PruneRecipe, ComposesWithOtherRecipes) {
  const Trace before = modelled_step(small_networks()[1].model, recipe_in(Precision::bf16));
  const Machine machine = test_machine();
  const auto pricer = test_pricer(machine);
  for (const char* const policy : {"accumulate:3", "optimizer:adamw_8bit", "compile"}) {
    const Trace both = apply_rewriters(before, {parse_policy("prune"), parse_policy(policy)}, machine, *pricer);
    EXPECT_EQ(check(both), std::vector<std::string>{}) << policy;
    EXPECT_EQ(masks(both), masks(recipe_rewritten(before, "prune"))) << policy;
  }
}

TEST(PruneRecipe, APrunedStepIsRefused) {
  const Trace once =
      recipe_rewritten(modelled_step(small_networks().front().model, recipe_in(Precision::fp32)), "prune");
  EXPECT_NE(refusal(once, "prune").find("its weights are pruned already"), std::string::npos);
}

TEST(PruneRecipe, WhatItsHooksDoNotReachIsRefused) {
  Recipe r = recipe_in(Precision::bf16);
  r.checkpoint = ActivationCheckpoint::full;
  EXPECT_NE(refusal(modelled_step(small_networks()[1].model, r), "prune").find("runs again"), std::string::npos);
  const Trace compiled =
      recipe_rewritten(modelled_step(small_networks()[1].model, recipe_in(Precision::bf16)), "compile");
  EXPECT_NE(refusal(compiled, "prune").find("is compiled"), std::string::npos);
  EXPECT_NE(refusal(gpt_step({}), "prune"), "");
  const Trace chunked =
      recipe_rewritten(modelled_step(small_networks()[1].model, recipe_in(Precision::bf16)), "loss:chunked,chunks=4");
  EXPECT_NE(refusal(chunked, "prune").find("a further call of a layer"), std::string::npos);
}

// Masks are buffers of the whole layer: what divides layers or parameters does not take them for parameters.
TEST(PruneRecipe, WhatDividesParametersRefusesMasks) {
  const Trace pruned = recipe_rewritten(modelled_step(small_networks()[1].model, recipe_in(Precision::bf16)), "prune");
  for (const char* const policy :
       {"tensor:ranks=2", "zero:stage=3,ranks=8", "zero:stage=1,ranks=8", "fsdp:ranks=8", "deepspeed:stage=3,ranks=8"})
    EXPECT_NE(refusal(pruned, policy).find("masks (prune)"), std::string::npos) << policy << refusal(pruned, policy);
  EXPECT_EQ(refusal(pruned, "ddp:ranks=8"), "");
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
