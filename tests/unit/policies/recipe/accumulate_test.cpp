// A step with several passes per update is the step of the program that accumulates gradients, operator by operator.
#include <gtest/gtest.h>

#include <filesystem>

#include "models/hw/machine_file.h"
#include "models/hw/modelled_step.h"
#include "models/workload/import/mwc/mwc_import.h"
#include "sim/trace/repeat.h"
#include "sim/trace/trace_check.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/recipe_checks.h"
#include "tests/support/rewrite_checks.h"
#include "tests/support/small_networks.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

std::string difference(const Model& model, Recipe r, std::int64_t passes) {
  const Trace after = recipe_rewritten(modelled_step(model, r), "accumulate:" + std::to_string(passes));
  EXPECT_EQ(check(after), std::vector<std::string>{});
  r.accumulation = passes;
  return step_difference(after, modelled_step(model, r), Calls::may_wait);
}

TEST(AccumulateRecipe, IsWhatTheGeneratorWritesWithThatManyPasses) {
  for (const SmallNetwork& network : small_networks())
    for (const Precision precision : {Precision::amp_bf16, Precision::bf16, Precision::fp32, Precision::amp_fp16})
      for (const std::int64_t passes : {1, 2, 5}) {
        SCOPED_TRACE(std::string(network.name) + ", precision " + std::to_string(static_cast<int>(precision)) + ", " +
                     std::to_string(passes));
        EXPECT_EQ(difference(network.model, recipe_in(precision), passes), "");
      }
}

// Gradients that live throughout (zero_grad fills them), checkpointed layers, attention in parts.
TEST(AccumulateRecipe, HoldsWithOtherPrograms) {
  const Model model = small_networks()[1].model;
  Recipe r = recipe_in(Precision::bf16);
  r.set_to_none = false;
  EXPECT_EQ(difference(model, r, 3), "");
  r = recipe_in(Precision::amp_bf16);
  r.checkpoint = ActivationCheckpoint::full;
  EXPECT_EQ(difference(model, r, 3), "");
  r = recipe_in(Precision::bf16);
  r.attention = Attention::plain;
  EXPECT_EQ(difference(model, r, 3), "");
}

TEST(AccumulateRecipe, ComposesWithAnotherOptimizer) {
  for (const SmallNetwork& network : small_networks()) {
    SCOPED_TRACE(network.name);
    Recipe r = recipe_in(Precision::amp_bf16);
    const Trace before = modelled_step(network.model, r);
    r.accumulation = 2;
    r.optimizer = OptimizerKind::sgd;
    const Trace expected = modelled_step(network.model, r);
    EXPECT_EQ(step_difference(recipe_rewritten(recipe_rewritten(before, "optimizer:sgd"), "accumulate:2"), expected),
              "");
    EXPECT_EQ(step_difference(recipe_rewritten(recipe_rewritten(before, "accumulate:2"), "optimizer:sgd"), expected),
              "");
  }
}

// What differs by one pass only is there once: a planted difference is found.
TEST(AccumulateRecipe, TheComparisonSeesAMissingSum) {
  const Model model = small_networks().front().model;
  Recipe r = recipe_in(Precision::bf16);
  Trace after = recipe_rewritten(modelled_step(model, r), "accumulate:2");
  const auto sum =
      std::ranges::find_if(after.ops, [&](const Op& op) { return after.strings[op.name] == "aten::add_"; });
  ASSERT_NE(sum, after.ops.end());
  sum->flops += 1;
  r.accumulation = 2;
  EXPECT_NE(step_difference(after, modelled_step(model, r)), "");
}

TEST(AccumulateRecipe, EachOfSeveralStepsAccumulates) {
  const Trace one = modelled_step(small_networks().front().model, recipe_in(Precision::amp_bf16));
  const Trace two = recipe_rewritten(repeated(one, 2), "accumulate:3");
  EXPECT_EQ(check(two), std::vector<std::string>{});
  EXPECT_EQ(count(two, Phase::backward), 2 * count(recipe_rewritten(one, "accumulate:3"), Phase::backward));
  EXPECT_EQ(two.samples_per_step, 3 * one.samples_per_step);
}

// Hand-overs between the thread of forward and that of backward stay in each pass; no number could be the loss.
TEST(AccumulateRecipe, AnotherThreadRunsBackwardInEachPass) {
  const Trace one = gpt_step({});
  const Trace after = rewritten(one, "accumulate:3");
  EXPECT_EQ(check(after), std::vector<std::string>{});
  EXPECT_TRUE(
      std::ranges::any_of(after.notes, [](const std::string& note) { return note.ends_with("none is divided."); }));
  const auto hand_overs = [](const Trace& t) {
    return std::ranges::count_if(t.ops, [](const Op& op) { return op.kind == OpKind::hand_over; });
  };
  EXPECT_EQ(hand_overs(after), 3 * hand_overs(one));
  EXPECT_EQ(count(after, Phase::forward), 3 * count(one, Phase::forward));
  EXPECT_EQ(count(after, Phase::optimizer), count(one, Phase::optimizer));
  EXPECT_GT(simulated(after).end.count(), 2 * simulated(one).end.count());
}

TEST(AccumulateRecipe, WhatCannotAccumulateIsRefused) {
  const Model model = small_networks().front().model;
  Recipe r = recipe_in(Precision::bf16);
  r.optimizer_in_backward = true;
  EXPECT_NE(refusal(modelled_step(model, r), "accumulate:2").find("runs inside backward"), std::string::npos);
  // A capture whose phases say "optimizer" from the first update on.
  const auto folder = std::filesystem::path(MEMWALL_SOURCE) / "traces/samples/captures/variants";
  const Trace in_backward = read_mwc(folder / "in_backward.mwc.gz").trace;
  EXPECT_NE(
      refusal(modelled_on(in_backward, load_machine("a100-sxm-80gb")), "accumulate:2").find("runs inside backward"),
      std::string::npos);
  r = recipe_in(Precision::bf16);
  r.accumulation = 2;
  EXPECT_NE(refusal(modelled_step(model, r), "accumulate:2").find("2 passes in 1 step"), std::string::npos);
  r = recipe_in(Precision::bf16);
  r.data_parallel = 2;
  EXPECT_NE(refusal(modelled_step(model, r), "accumulate:2").find("is a collective"), std::string::npos);
  EXPECT_NE(refusal(modelled_step(model, recipe_in(Precision::bf16)), "accumulate:65536").find("expected fewer passes"),
            std::string::npos);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
