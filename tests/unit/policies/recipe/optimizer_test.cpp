// A step with another optimizer is the step of the program with that optimizer, operator by operator.
#include <gtest/gtest.h>

#include "sim/trace/repeat.h"
#include "sim/trace/trace_check.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/recipe_checks.h"
#include "tests/support/rewrite_checks.h"
#include "tests/support/small_networks.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

struct Setting {
  const char* policy;
  OptimizerKind kind;
  OptimizerKernels kernels;
};

const std::vector<Setting> kSettings = {
    {"optimizer:sgd", OptimizerKind::sgd, OptimizerKernels::foreach},
    {"optimizer:sgd,kernels=fused", OptimizerKind::sgd, OptimizerKernels::fused},
    {"optimizer:adam,kernels=foreach", OptimizerKind::adam, OptimizerKernels::foreach},
    {"optimizer:adam,kernels=fused", OptimizerKind::adam, OptimizerKernels::fused},
    {"optimizer:adamw", OptimizerKind::adamw, OptimizerKernels::foreach},
    {"optimizer:adamw,kernels=fused", OptimizerKind::adamw, OptimizerKernels::fused},
    {"optimizer:adamw_8bit", OptimizerKind::adamw_8bit, OptimizerKernels::foreach}};

Recipe with(Recipe recipe, const Setting& setting) {
  recipe.optimizer = setting.kind;
  recipe.optimizer_kernels = setting.kernels;
  return recipe;
}

Recipe recipe(Precision precision) {
  Recipe r;
  r.batch = 2;
  r.precision = precision;
  return r;
}

// Every optimizer of `settings` from every other: of one network and one kind of parameters.
void expect_each_from_each(const Model& model, const Recipe& recipe, const std::vector<Setting>& settings) {
  std::vector<Trace> generated;
  for (const Setting& setting : settings) generated.push_back(modelled_step(model, with(recipe, setting)));
  for (std::size_t from = 0; from < settings.size(); ++from)
    for (std::size_t to = 0; to < settings.size(); ++to) {
      SCOPED_TRACE(std::string("from ") + settings[from].policy + " to " + settings[to].policy);
      const Trace after = recipe_rewritten(generated[from], settings[to].policy);
      EXPECT_EQ(check(after), std::vector<std::string>{});
      EXPECT_EQ(step_difference(after, generated[to]), "");
    }
}

TEST(OptimizerRecipe, IsWhatTheGeneratorWritesWithThatOptimizer) {
  for (const SmallNetwork& network : small_networks()) {
    SCOPED_TRACE(network.name);
    for (const Precision precision : {Precision::amp_bf16, Precision::bf16})
      expect_each_from_each(network.model, recipe(precision), kSettings);
  }
}

// Parameters in 16 bit, an fp32 copy in the optimizer; not of 8-bit AdamW.
TEST(OptimizerRecipe, AMasterCopyStays) {
  Recipe r = recipe(Precision::bf16);
  r.master_parameters = true;
  for (const SmallNetwork& network : small_networks()) {
    SCOPED_TRACE(network.name);
    expect_each_from_each(network.model, r, {kSettings.begin(), kSettings.end() - 1});
  }
}

Bytes state_bytes(const Trace& t) {
  Bytes bytes = 0;
  for (const Storage& s : t.storages) bytes += s.kind == StorageKind::optimizer_state ? s.bytes : 0;
  return bytes;
}

Bytes parameter_bytes(const Trace& t) {
  Bytes bytes = 0;
  for (const Storage& s : t.storages) bytes += s.kind == StorageKind::parameter ? s.bytes : 0;
  return bytes;
}

// Two moments as large as the parameters, whatever was there.
TEST(OptimizerRecipe, StatesAreThoseOfTheOptimizer) {
  const Trace before = modelled_step(small_networks().front().model, recipe(Precision::amp_bf16));
  EXPECT_EQ(state_bytes(recipe_rewritten(before, "optimizer:adam")), 2 * parameter_bytes(before));
  EXPECT_EQ(state_bytes(recipe_rewritten(before, "optimizer:sgd")), parameter_bytes(before));
}

// The most that the update makes and drops.
Bytes temporaries(const Trace& t) {
  Bytes most = 0, now = 0;
  for (const Op& op : t.ops)
    if (op.phase == Phase::optimizer && (op.kind == OpKind::alloc || op.kind == OpKind::free) &&
        t.storages[op.target].kind == StorageKind::workspace)
      most =
          std::max(most, now += op.kind == OpKind::alloc ? t.storages[op.target].bytes : -t.storages[op.target].bytes);
  return most;
}

// Two weights of a module that are called alike have a master copy each.
TEST(OptimizerRecipe, ParametersOfOneNameKeepTheirOwnMasterCopies) {
  const Trace before = gpt_step({});
  const auto masters = [](const Trace& t) {
    Bytes bytes = 0;
    for (const Storage& s : t.storages) bytes += t.strings[s.label].ends_with(".master") ? s.bytes : 0;
    return bytes;
  };
  ASSERT_GT(masters(before), 0);
  EXPECT_EQ(masters(rewritten(before, "optimizer:sgd")), masters(before));
}

// torch/optim/adam.py, _single_tensor_adam: 8 kernels of each parameter with decay, 7 without, one at a time.
TEST(OptimizerRecipe, AForLoopUpdatesParameterByParameter) {
  const Trace before = modelled_step(small_networks().front().model, recipe(Precision::amp_bf16));
  std::size_t parameters = 0;
  for (const Storage& s : before.storages) parameters += s.kind == StorageKind::parameter ? 1 : 0;
  for (const auto& [policy, kernels] : {std::pair{"optimizer:adamw,kernels=for_loop", 8},
                                        {"optimizer:adam,kernels=for_loop", 7},
                                        {"optimizer:sgd,kernels=for_loop", 3}}) {
    const Trace after = recipe_rewritten(before, policy);
    EXPECT_EQ(check(after), std::vector<std::string>{});
    EXPECT_EQ(count(after, Phase::optimizer), parameters * static_cast<std::size_t>(kernels)) << policy;
  }
  // Of the temporaries two are there at once, of the largest parameters in a row, where foreach holds all.
  EXPECT_LT(temporaries(recipe_rewritten(before, "optimizer:adamw,kernels=for_loop")),
            temporaries(recipe_rewritten(before, "optimizer:adamw")));
}

// A hook behind each gradient, in place of one step behind backward.
TEST(OptimizerRecipe, UpdatesInBackwardAreWhatTheGeneratorWrites) {
  for (const SmallNetwork& network : small_networks())
    for (const Precision precision : {Precision::amp_bf16, Precision::bf16})
      for (const Setting& to : kSettings) {
        SCOPED_TRACE(std::string(network.name) + " " + to.policy);
        Recipe r = with(recipe(precision), to);
        const Trace before = modelled_step(network.model, recipe(precision));
        const Trace after = recipe_rewritten(before, std::string(to.policy) + ",in_backward=1");
        r.optimizer_in_backward = true;
        EXPECT_EQ(check(after), std::vector<std::string>{});
        EXPECT_EQ(step_difference(after, modelled_step(network.model, r), Calls::may_wait), "");
      }
}

TEST(OptimizerRecipe, GradientsThatAreNeededTogetherAreNotUsedUpInBackward) {
  const Model model = small_networks().front().model;
  Recipe r = recipe(Precision::bf16);
  r.set_to_none = false;
  EXPECT_NE(refusal(modelled_step(model, r), "optimizer:adam,in_backward=1").find("gradients together"),
            std::string::npos);
}

TEST(OptimizerRecipe, SeveralStepsAreUpdatedEach) {
  const Trace one = modelled_step(small_networks().front().model, recipe(Precision::amp_bf16));
  const Trace two = recipe_rewritten(repeated(one, 2), "optimizer:sgd");
  EXPECT_EQ(check(two), std::vector<std::string>{});
  EXPECT_EQ(count(two, Phase::optimizer), 2 * count(recipe_rewritten(one, "optimizer:sgd"), Phase::optimizer));
  EXPECT_EQ(state_bytes(two), parameter_bytes(one));
}

TEST(OptimizerRecipe, WhatHasAnotherFormIsRefused) {
  const Model model = small_networks().front().model;
  Recipe r = recipe(Precision::bf16);
  r.master_parameters = true;
  EXPECT_NE(refusal(modelled_step(model, r), "optimizer:adamw_8bit").find("fp32 copy of the parameters"),
            std::string::npos);
  r = recipe(Precision::bf16);
  r.optimizer_in_backward = true;
  EXPECT_NE(refusal(modelled_step(model, r), "optimizer:sgd").find("runs inside backward"), std::string::npos);
  EXPECT_NE(refusal(modelled_step(model, recipe(Precision::amp_fp16)), "optimizer:sgd").find("is of a GradScaler"),
            std::string::npos);
  r = recipe(Precision::bf16);
  r.optimizer = OptimizerKind::none;
  EXPECT_NE(refusal(modelled_step(model, r), "optimizer:sgd").find("no op of it updates"), std::string::npos);
  EXPECT_THROW(parse_policy("optimizer:lion"), UsageError);
  EXPECT_NE(refusal(modelled_step(model, recipe(Precision::bf16)), "optimizer:adamw_8bit,kernels=fused")
                .find("has kernels of its own"),
            std::string::npos);
}

// Moments of 100,000 elements and more are on the host, and come through a window on the device.
TEST(OptimizerRecipe, PagedMomentsComeAndGo) {
  Model model = small_networks().front().model;
  model.width = 512;
  for (const Precision precision : {Precision::fp32, Precision::bf16}) {
    Recipe to = recipe(precision);
    to.optimizer = OptimizerKind::adamw_8bit;
    const Trace there = modelled_step(model, to);
    to.paged_optimizer = true;
    const Trace paged = modelled_step(model, to);
    const Trace after = recipe_rewritten(modelled_step(model, recipe(precision)), "optimizer:adamw_8bit,paged=1");
    EXPECT_EQ(check(after), std::vector<std::string>{});
    EXPECT_EQ(step_difference(after, paged), "");
    EXPECT_NE(step_difference(after, there), "");
    EXPECT_NE(refusal(paged, "optimizer:adamw").find("'cudaMemPrefetchAsync' of its optimizer is no kernel"),
              std::string::npos);
  }
  EXPECT_NE(refusal(modelled_step(model, recipe(Precision::bf16)), "optimizer:adamw,paged=1").find("adamw_8bit alone"),
            std::string::npos);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
