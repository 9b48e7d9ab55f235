// A step whose loss is taken in pieces is the step of the program that does so, operator by operator.
#include <gtest/gtest.h>

#include "sim/trace/repeat.h"
#include "sim/trace/trace_check.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/recipe_checks.h"
#include "tests/support/rewrite_checks.h"
#include "tests/support/small_networks.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

std::vector<SmallNetwork> decoders() {
  std::vector<SmallNetwork> all = small_networks();
  all.resize(2);
  return all;
}

Recipe recipe(Precision precision, std::int64_t batch) {
  Recipe r;
  r.batch = batch;
  r.precision = precision;
  return r;
}

std::string chunked_difference(const Model& model, Recipe r, std::int64_t chunks) {
  const Trace after = recipe_rewritten(modelled_step(model, r), "loss:chunked,chunks=" + std::to_string(chunks));
  EXPECT_EQ(check(after), std::vector<std::string>{});
  r.loss_chunks = chunks;
  return step_difference(after, modelled_step(model, r), Calls::may_wait);
}

std::string fused_difference(const Model& model, Recipe r) {
  const Trace after = recipe_rewritten(modelled_step(model, r), "loss:fused_linear_cross_entropy");
  EXPECT_EQ(check(after), std::vector<std::string>{});
  r.fused_linear_loss = true;
  return step_difference(after, modelled_step(model, r), Calls::may_wait);
}

TEST(LossRecipe, ChunksAreWhatTheGeneratorWrites) {
  for (const SmallNetwork& network : decoders())
    for (const Precision precision : {Precision::bf16, Precision::fp32, Precision::amp_bf16, Precision::amp_fp16})
      for (const std::int64_t batch : {1, 3})
        for (const std::int64_t chunks : {2, 5, 32}) {
          SCOPED_TRACE(std::string(network.name) + ", precision " + std::to_string(static_cast<int>(precision)) +
                       ", batch " + std::to_string(batch) + ", chunks " + std::to_string(chunks));
          EXPECT_EQ(chunked_difference(network.model, recipe(precision, batch), chunks), "");
        }
}

TEST(LossRecipe, TheFusedLossIsWhatTheGeneratorWrites) {
  for (const SmallNetwork& network : decoders())
    for (const Precision precision : {Precision::bf16, Precision::fp32, Precision::fp16})
      for (const std::int64_t batch : {1, 3}) {
        SCOPED_TRACE(std::string(network.name) + ", precision " + std::to_string(static_cast<int>(precision)) +
                     ", batch " + std::to_string(batch));
        EXPECT_EQ(fused_difference(network.model, recipe(precision, batch)), "");
      }
}

// Gradients added to new tensors (fake tensors), logits that are not cast up, checkpointed layers, a frozen model
// beside pairs of low rank, whose output layer has no gradient.
TEST(LossRecipe, HoldsWithOtherPrograms) {
  for (const SmallNetwork& network : decoders()) {
    SCOPED_TRACE(network.name);
    Recipe r = recipe(Precision::bf16, 2);
    r.sums_in_place = false;
    EXPECT_EQ(chunked_difference(network.model, r, 3), "");
    EXPECT_EQ(fused_difference(network.model, r), "");
    r = recipe(Precision::bf16, 2);
    r.loss_in_fp32 = false;
    EXPECT_EQ(chunked_difference(network.model, r, 4), "");
    r = recipe(Precision::bf16, 2);
    r.checkpoint = ActivationCheckpoint::full;
    EXPECT_EQ(chunked_difference(network.model, r, 4), "");
    EXPECT_EQ(fused_difference(network.model, r), "");
    r = recipe(Precision::bf16, 2);
    r.lora_rank = 4;
    EXPECT_EQ(chunked_difference(network.model, r, 4), "");
    EXPECT_EQ(fused_difference(network.model, r), "");
  }
}

TEST(LossRecipe, ComposesWithOtherRecipes) {
  const Model model = small_networks()[1].model;
  Recipe r = recipe(Precision::bf16, 2);
  const Trace before = recipe_rewritten(modelled_step(model, r), "loss:chunked,chunks=4");
  r.loss_chunks = 4;
  r.optimizer = OptimizerKind::sgd;
  EXPECT_EQ(step_difference(recipe_rewritten(before, "optimizer:sgd"), modelled_step(model, r), Calls::may_wait), "");
  r.optimizer = OptimizerKind::adamw;
  r.accumulation = 3;
  EXPECT_EQ(step_difference(recipe_rewritten(before, "accumulate:3"), modelled_step(model, r), Calls::may_wait), "");
}

TEST(LossRecipe, EachPassTakesItsLossInPieces) {
  const Model model = small_networks().front().model;
  Recipe r = recipe(Precision::amp_bf16, 2);
  const Trace two = recipe_rewritten(repeated(modelled_step(model, r), 2), "loss:chunked,chunks=4");
  EXPECT_EQ(check(two), std::vector<std::string>{});
  r.loss_chunks = 4;
  EXPECT_EQ(count(two, Phase::backward), 2 * count(modelled_step(model, r), Phase::backward));
}

// What pieces are for: of the logits in fp32, the softmax and their gradients only a piece is there at a time.
TEST(LossRecipe, HoldsLessAtItsPeak) {
  Model model = small_networks()[1].model;
  model.vocabulary = 4096;
  const Recipe r = recipe(Precision::bf16, 4);
  const Trace whole = modelled_step(model, r);
  const Bytes logits = 4 * model.longest * model.vocabulary * 4;
  const Bytes before = activation_peak(whole);
  const Bytes chunked = activation_peak(recipe_rewritten(whole, "loss:chunked"));
  const Bytes fused = activation_peak(recipe_rewritten(whole, "loss:fused_linear_cross_entropy"));
  EXPECT_LT(chunked, before - logits / 4);
  EXPECT_LT(fused, before - logits * 3 / 4);
}

// A planted difference is found.
TEST(LossRecipe, TheComparisonSeesAnotherPiece) {
  const Model model = small_networks().front().model;
  Recipe r = recipe(Precision::bf16, 2);
  Trace after = recipe_rewritten(modelled_step(model, r), "loss:chunked,chunks=4");
  const auto piece = std::ranges::find_if(
      after.ops, [&](const Op& op) { return after.strings[op.name] == "aten::_log_softmax_backward_data"; });
  ASSERT_NE(piece, after.ops.end());
  piece->bytes += 2;
  r.loss_chunks = 4;
  EXPECT_NE(step_difference(after, modelled_step(model, r), Calls::may_wait), "");
}

TEST(LossRecipe, WhatHasAnotherLossIsRefused) {
  const auto networks = small_networks();
  const auto why = [](const Model& model, const Recipe& r, const char* policy = "loss:chunked") {
    return refusal(modelled_step(model, r), policy);
  };
  const Recipe plain = recipe(Precision::bf16, 2);
  EXPECT_NE(why(networks[2].model, plain).find("has a bias"), std::string::npos);  // BERT
  EXPECT_NE(why(networks[4].model, plain).find("has a bias"), std::string::npos);  // ResNet
  Recipe r = plain;
  r.shifted_logits = true;
  EXPECT_NE(why(networks[1].model, r).find("are no product"), std::string::npos);
  r = plain;
  r.returned_logits = ReturnedLogits::backward;
  EXPECT_NE(why(networks[1].model, r).find("keeps all logits"), std::string::npos) << why(networks[1].model, r);
  r = plain;
  r.loss_chunks = 4;
  EXPECT_NE(why(networks[1].model, r).find("several cross entropies"), std::string::npos);
  r = plain;
  r.fused_linear_loss = true;
  EXPECT_NE(why(networks[1].model, r).find("no cross entropy"), std::string::npos);
  EXPECT_NE(why(networks[1].model, recipe(Precision::amp_bf16, 2), "loss:fused_linear_cross_entropy")
                .find("under autocast is not implemented"),
            std::string::npos);
  EXPECT_NE(why(networks[1].model, plain, "loss:chunked,chunks=33").find("no more chunks"), std::string::npos);
  EXPECT_NE(why(networks[1].model, plain, "loss:fused_linear_cross_entropy,chunks=4").find("no chunks="),
            std::string::npos);
  EXPECT_NE(refusal(gpt_step({}), "loss:chunked"), "");
  EXPECT_THROW(parse_policy("loss:whole"), UsageError);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
