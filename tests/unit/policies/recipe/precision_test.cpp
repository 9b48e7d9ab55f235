// A step in another precision is the step of the program in that precision: the same kernels, the same work, the same
// bytes on the device at each of them.
#include <gtest/gtest.h>

#include "sim/trace/trace_check.h"
#include "tests/support/kernel_lines.h"
#include "tests/support/recipe_checks.h"
#include "tests/support/rewrite_checks.h"
#include "tests/support/small_networks.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

Recipe recipe(Precision precision, Attention attention = Attention::flash) {
  Recipe r;
  r.batch = 2;
  r.precision = precision;
  r.attention = attention;
  return r;
}

void expect_same(const Model& model, const Recipe& from, const std::string& policy, const Recipe& to) {
  const Trace after = recipe_rewritten(modelled_step(model, from), policy);
  EXPECT_EQ(check(after), std::vector<std::string>{});
  EXPECT_EQ(kernel_difference(after, modelled_step(model, to)), "");
}

TEST(PrecisionRecipe, AutocastIsWhatTheGeneratorWrites) {
  for (const SmallNetwork& network : small_networks()) {
    SCOPED_TRACE(network.name);
    expect_same(network.model, recipe(Precision::fp32), "precision:amp_bf16", recipe(Precision::amp_bf16));
  }
}

TEST(PrecisionRecipe, SixteenBitIsWhatTheGeneratorWrites) {
  for (const SmallNetwork& network : small_networks()) {
    SCOPED_TRACE(network.name);
    expect_same(network.model, recipe(Precision::fp32),
                network.name == std::string("vit") ? "precision:bf16" : "precision:bf16,loss_in_fp32=1",
                recipe(Precision::bf16));
  }
}

// Normalizations in parts, which run in fp32: neither cast is seen in the fp32 step.
TEST(PrecisionRecipe, NormalizationsInPartsStayInFp32) {
  Model model = small_rotary_decoder();
  model.normalization = Normalization::rms_norm_in_parts;
  for (const bool in_place : {true, false}) {
    SCOPED_TRACE(in_place);
    Recipe from = recipe(Precision::fp32), to = recipe(Precision::bf16);
    from.sums_in_place = to.sums_in_place = in_place;
    expect_same(model, from, "precision:bf16,loss_in_fp32=1", to);
    to.precision = Precision::amp_bf16;
    expect_same(model, from, "precision:amp_bf16", to);
  }
}

TEST(PrecisionRecipe, HoldsWhateverTheAttentionAndTheNumberOfPasses) {
  for (const SmallNetwork& network : small_networks()) {
    SCOPED_TRACE(network.name);
    const bool rotary = network.name == std::string("llama");  // copies of wide heads: a difference that remains
    for (const Attention attention : {Attention::plain, Attention::memory_efficient}) {
      if (rotary) continue;
      Recipe from = recipe(Precision::fp32, attention), to = recipe(Precision::amp_bf16, attention);
      expect_same(network.model, from, "precision:amp_bf16", to);
      if (network.model.architecture != Architecture::vision) {  // whose class token is then copied, not summed up
        from.batch = to.batch = 1;                               // heads of one sequence are no copies
        expect_same(network.model, from, "precision:amp_bf16", to);
      }
      from.accumulation = to.accumulation = 2;
      expect_same(network.model, from, "precision:amp_bf16", to);
    }
  }
}

// The loss and its gradient times a scale, gradients divided and checked, the scale adapted.
TEST(PrecisionRecipe, AutocastInFp16HasAGradScaler) {
  for (const SmallNetwork& network : small_networks())
    for (const OptimizerKind optimizer : {OptimizerKind::adamw, OptimizerKind::sgd})
      for (const auto& [kernels, passes] : {std::pair{OptimizerKernels::foreach, 1},
                                            {OptimizerKernels::foreach, 2},
                                            {OptimizerKernels::fused, 1},
                                            {OptimizerKernels::fused, 2}}) {
        SCOPED_TRACE(std::string(network.name) + " " + std::to_string(passes));
        Recipe from = recipe(Precision::fp32), to = recipe(Precision::amp_fp16);
        from.optimizer_kernels = to.optimizer_kernels = kernels;
        from.optimizer = to.optimizer = optimizer;
        from.accumulation = to.accumulation = passes;
        expect_same(network.model, from, "precision:amp_fp16", to);
      }
}

// An output layer that makes its logits in pieces: its weight is cast once, and the gradients of the pieces meet in 16
// bit before their sum is cast.
TEST(PrecisionRecipe, AParameterOfSeveralProductsIsCastOnce) {
  for (const SmallNetwork& network : small_networks()) {
    if (network.model.architecture != Architecture::decoder) continue;
    for (const std::int64_t chunks : {2, 4})
      for (const bool in_place : {true, false})
        for (const std::int64_t passes : {1, 2}) {
          SCOPED_TRACE(std::string(network.name) + " " + std::to_string(chunks) + " " + std::to_string(passes));
          Recipe from = recipe(Precision::fp32), to = recipe(Precision::amp_bf16);
          from.loss_chunks = to.loss_chunks = chunks;
          from.sums_in_place = to.sums_in_place = in_place;
          from.accumulation = to.accumulation = passes;
          expect_same(network.model, from, "precision:amp_bf16", to);
        }
  }
}

// Frozen weights are cast in each use, and some gradients are computed that nobody asks for.
TEST(PrecisionRecipe, HoldsBesideFrozenWeights) {
  for (const SmallNetwork& network : small_networks()) {
    if (network.model.architecture == Architecture::vision || network.model.architecture == Architecture::resnet)
      continue;
    SCOPED_TRACE(network.name);
    Recipe from = recipe(Precision::fp32), to = recipe(Precision::amp_bf16);
    from.lora_rank = to.lora_rank = 8;
    expect_same(network.model, from, "precision:amp_bf16", to);
    to.precision = Precision::bf16;
    expect_same(network.model, from, "precision:bf16,loss_in_fp32=1", to);
  }
}

TEST(PrecisionRecipe, Fp16HasTheFormOfBf16) {
  const Model model = small_networks().front().model;
  expect_same(model, recipe(Precision::fp32), "precision:fp16,loss_in_fp32=1", recipe(Precision::fp16));
}

// torchao's linear layers, of a step in bf16 or brought there first.
TEST(PrecisionRecipe, Fp8IsWhatTheGeneratorWrites) {
  for (const SmallNetwork& network : small_networks()) {
    if (network.model.architecture == Architecture::resnet) continue;
    const bool vision = network.model.architecture == Architecture::vision;
    for (const std::int64_t passes : {1, 2})
      for (const OptimizerKind optimizer : {OptimizerKind::adamw, OptimizerKind::sgd}) {
        SCOPED_TRACE(std::string(network.name) + " " + std::to_string(passes));
        Recipe from = recipe(Precision::bf16), to = recipe(Precision::fp8);
        from.batch = to.batch = vision ? 16 : 2;  // of 17 tokens each, which make a multiple of 16
        from.accumulation = to.accumulation = passes;
        from.optimizer = to.optimizer = optimizer;
        expect_same(network.model, from, "precision:fp8", to);
        from.precision = Precision::fp32;
        expect_same(network.model, from, vision ? "precision:fp8" : "precision:fp8,loss_in_fp32=1", to);
      }
  }
}

TEST(PrecisionRecipe, Fp8HoldsWhateverTheAttention) {
  for (const SmallNetwork& network : small_networks()) {
    if (network.model.architecture == Architecture::resnet || network.model.architecture == Architecture::vision)
      continue;
    SCOPED_TRACE(network.name);
    for (const Attention attention : {Attention::plain, Attention::memory_efficient})
      expect_same(network.model, recipe(Precision::bf16, attention), "precision:fp8",
                  recipe(Precision::fp8, attention));
  }
}

// Nothing is said to be kept for backward in a step that does not say it.
TEST(PrecisionRecipe, CheckpointsStandBehindFp8) {
  for (const SmallNetwork& network : small_networks()) {
    if (network.model.architecture == Architecture::resnet || network.model.architecture == Architecture::vision)
      continue;
    SCOPED_TRACE(network.name);
    const char* const checkpoint = "checkpoint:mode=full";
    const Trace after = recipe_rewritten(
        recipe_rewritten(modelled_step(network.model, recipe(Precision::bf16)), "precision:fp8"), checkpoint);
    EXPECT_EQ(
        kernel_difference(after, recipe_rewritten(modelled_step(network.model, recipe(Precision::fp8)), checkpoint)),
        "");
  }
}

TEST(PrecisionRecipe, Fp8IsRefusedWhereItsKernelsAre) {
  const auto why = [&](const Model& model, const Recipe& r, const char* policy = "precision:fp8") {
    return refusal(modelled_step(model, r), policy);
  };
  const std::vector<SmallNetwork> networks = small_networks();
  const Model& gpt = networks.front().model;
  EXPECT_NE(why(networks[3].model, recipe(Precision::bf16)).find("has 34 rows; expected a multiple of 16"),
            std::string::npos);
  EXPECT_NE(why(networks[4].model, recipe(Precision::fp32)).find("no linear layer"), std::string::npos);
  EXPECT_NE(why(gpt, recipe(Precision::fp8)).find("is in fp8"), std::string::npos);
  EXPECT_NE(why(gpt, recipe(Precision::fp16)).find("is in fp16"), std::string::npos);
  EXPECT_NE(why(gpt, recipe(Precision::amp_bf16)).find("(autocast)"), std::string::npos);
  EXPECT_THROW(recipe_rewritten(modelled_step(gpt, recipe(Precision::bf16)), "precision:fp8", "a100-sxm-80gb"),
               UsageError);
  EXPECT_NE(why(gpt, recipe(Precision::bf16), "precision:fp8,loss_in_fp32=1").find("means nothing"), std::string::npos);
  Recipe lora = recipe(Precision::bf16);
  lora.lora_rank = 16;
  EXPECT_NE(why(gpt, lora).find("that nothing trains"), std::string::npos);
  Recipe checkpointed = recipe(Precision::bf16);
  checkpointed.checkpoint = ActivationCheckpoint::full;
  EXPECT_NE(why(gpt, checkpointed).find("runs forward again"), std::string::npos);
  Model odd = gpt;  // of these layers, the MLP's stay in bf16
  odd.inner = 200;
  const Trace mixed = recipe_rewritten(modelled_step(odd, recipe(Precision::bf16)), "precision:fp8");
  EXPECT_EQ(check(mixed), std::vector<std::string>{});
  std::size_t low = 0, products = 0;
  for (const Op& op : mixed.ops)
    if (op.operator_class == OperatorClass::gemm) (op.data_type == DataType::fp8 ? low : products) += 1;
  EXPECT_EQ(low, 12u) << "of two layers of two, three products each";
  EXPECT_EQ(products, 15u);
}

// Products in fp8 are scaled from those that they replace, all else is modelled.
TEST(PrecisionRecipe, Fp8TransfersMeasuredProducts) {
  Trace before = modelled_step(small_networks().front().model, recipe(Precision::bf16));
  const Trace modelled = recipe_rewritten(before, "precision:fp8");
  for (Op& op : before.ops) {
    if (op.kind == OpKind::kernel) op.origin = Origin::measured;
    if (op.operator_class == OperatorClass::gemm) op.duration = 3 * op.duration;
  }
  const Trace after = recipe_rewritten(before, "precision:fp8");
  ASSERT_EQ(after.ops.size(), modelled.ops.size());
  std::size_t low = 0;
  for (OpId id = 0; id < after.ops.size(); ++id) {
    if (after.ops[id].data_type != DataType::fp8 || after.ops[id].operator_class != OperatorClass::gemm) continue;
    EXPECT_EQ(after.ops[id].origin, Origin::transferred);
    EXPECT_NEAR(static_cast<double>(after.ops[id].duration.count()),
                3.0 * static_cast<double>(modelled.ops[id].duration.count()),
                0.01 * static_cast<double>(after.ops[id].duration.count()));
    ++low;
  }
  EXPECT_EQ(low, 2u * 4u * 3u);
}

// Products alone, and no byte of memory.
TEST(PrecisionRecipe, Tf32ChangesProductsAlone) {
  const Trace before = modelled_step(small_networks().front().model, recipe(Precision::fp32));
  const Trace after = recipe_rewritten(before, "precision:tf32");
  ASSERT_EQ(after.ops.size(), before.ops.size());
  std::size_t products = 0;
  for (OpId id = 0; id < before.ops.size(); ++id) {
    const bool product = before.ops[id].operator_class == OperatorClass::gemm;
    products += product ? 1 : 0;
    EXPECT_EQ(after.ops[id].data_type, product ? DataType::tf32 : before.ops[id].data_type);
    EXPECT_EQ(after.ops[id].bytes, before.ops[id].bytes);
    if (!product) {
      EXPECT_EQ(after.ops[id].duration, before.ops[id].duration);
    }
  }
  EXPECT_GT(products, 10u);
}

TEST(PrecisionRecipe, ProductsGoBackToFp32) {
  const Trace before = modelled_step(small_networks().front().model, recipe(Precision::fp32));
  EXPECT_EQ(step_difference(recipe_rewritten(recipe_rewritten(before, "precision:tf32"), "precision:fp32"), before),
            "");
  EXPECT_NE(refusal(before, "precision:fp32").find("no product or convolution of it is in tf32"), std::string::npos);
}

// A difference that remains: autocast casts heads before a batched product copies them, the policy behind the copy
// where they are rotated (and so fp32). Where the two agree, the lines about it in docs/limits.md can go.
TEST(PrecisionRecipe, RotatedHeadsAreCastBehindTheirCopies) {
  Model model = small_rotary_decoder();
  model.key_value_heads = model.heads;
  const Trace before = modelled_step(model, recipe(Precision::fp32, Attention::plain));
  const Trace after = recipe_rewritten(before, "precision:amp_bf16");
  EXPECT_EQ(check(after), std::vector<std::string>{});
  EXPECT_EQ(kernel_count_difference(after, modelled_step(model, recipe(Precision::amp_bf16, Attention::plain))),
            "forward aten::clone bf16 -4; forward aten::clone fp32 +4");
}

// A difference that remains: what a program casts itself does nothing in fp32, so that a step does not show it. Here
// logits before the loss, where it is not said that they are (loss_in_fp32=1).
TEST(PrecisionRecipe, CastsOfTheProgramItselfAreNotTold) {
  const Model model = small_networks().front().model;
  const Trace after = recipe_rewritten(modelled_step(model, recipe(Precision::fp32)), "precision:bf16");
  EXPECT_EQ(kernel_count_difference(after, modelled_step(model, recipe(Precision::bf16))),
            "backward aten::_log_softmax_backward_data bf16 +1; backward aten::_log_softmax_backward_data fp32 -1; "
            "backward aten::_to_copy fp32 -1; backward aten::nll_loss_backward bf16 +1; "
            "backward aten::nll_loss_backward fp32 -1; backward aten::ones_like bf16 +1; "
            "backward aten::ones_like fp32 -1; forward aten::_log_softmax bf16 +1; forward aten::_log_softmax fp32 -1; "
            "forward aten::_to_copy bf16 -1; forward aten::nll_loss_forward bf16 +1; "
            "forward aten::nll_loss_forward fp32 -1");
}

// A difference that remains: of one image the class token's gradient is a copy, which is not told from a sum.
TEST(PrecisionRecipe, TheClassTokenOfOneImageIsNotCast) {
  const Model model = small_networks()[3].model;
  Recipe from = recipe(Precision::fp32), to = recipe(Precision::amp_bf16);
  from.batch = to.batch = 1;
  const Trace after = recipe_rewritten(modelled_step(model, from), "precision:amp_bf16");
  EXPECT_EQ(kernel_count_difference(after, modelled_step(model, to)), "backward aten::clone fp32 +1");
}

// A captured time is scaled, not replaced; casts are modelled.
TEST(PrecisionRecipe, MeasuredTimesAreTransferred) {
  Trace before = modelled_step(small_networks().front().model, recipe(Precision::fp32));
  for (Op& op : before.ops) {
    if (op.kind == OpKind::kernel) op.origin = Origin::measured;
    if (op.operator_class == OperatorClass::gemm) op.duration = 3 * op.duration;
  }
  const Trace modelled =
      recipe_rewritten(modelled_step(small_networks().front().model, recipe(Precision::fp32)), "precision:amp_bf16");
  const Trace after = recipe_rewritten(before, "precision:amp_bf16");
  ASSERT_EQ(after.ops.size(), modelled.ops.size());
  std::size_t transferred = 0;
  for (OpId id = 0; id < after.ops.size(); ++id) {
    const Op& op = after.ops[id];
    if (after.strings[op.operator_name] == "aten::_to_copy" && op.data_type != DataType::int64 &&
        op.phase != Phase::optimizer) {
      EXPECT_EQ(op.origin, Origin::modelled);
    }
    if (op.operator_class != OperatorClass::gemm) continue;
    EXPECT_EQ(op.origin, Origin::transferred);
    EXPECT_NEAR(static_cast<double>(op.duration.count()), 3.0 * static_cast<double>(modelled.ops[id].duration.count()),
                0.01 * static_cast<double>(op.duration.count()));
    ++transferred;
  }
  EXPECT_GT(transferred, 10u);
}

TEST(PrecisionRecipe, WhatHasNoRuleIsRefused) {
  const Model model = small_networks().front().model;
  const auto why = [&](const Recipe& r, const std::string& policy) { return refusal(modelled_step(model, r), policy); };
  EXPECT_NE(why(recipe(Precision::bf16), "precision:amp_bf16").find("needs a step in fp32"), std::string::npos);
  EXPECT_NE(why(recipe(Precision::fp32), "precision:tf32,loss_in_fp32=1").find("means nothing"), std::string::npos);
  EXPECT_NE(why(recipe(Precision::bf16), "precision:tf32").find("no product or convolution of it is in fp32"),
            std::string::npos);
  Recipe early = recipe(Precision::fp32);
  early.optimizer_in_backward = true;
  EXPECT_NE(why(early, "precision:amp_bf16").find("runs inside backward"), std::string::npos);
  expect_same(model, early, "precision:bf16,loss_in_fp32=1", [&] {
    Recipe to = early;
    to.precision = Precision::bf16;
    return to;
  }());
  Recipe of_8_bit = recipe(Precision::fp32);
  of_8_bit.optimizer = OptimizerKind::adamw_8bit;
  EXPECT_NE(why(of_8_bit, "precision:bf16").find("in which types its states would be"), std::string::npos);
  EXPECT_NE(why(recipe(Precision::amp_fp16), "precision:amp_bf16"), "");
  Recipe pieces = recipe(Precision::fp32);
  pieces.fused_linear_loss = true;
  EXPECT_NE(why(pieces, "precision:bf16").find("is of no operator of PyTorch"), std::string::npos);
  Recipe checkpointed = recipe(Precision::fp32);
  checkpointed.checkpoint = ActivationCheckpoint::full;
  EXPECT_NE(why(checkpointed, "precision:amp_bf16").find("runs forward again"), std::string::npos);
  Recipe reduced = recipe(Precision::fp32);
  reduced.data_parallel = 2;
  EXPECT_NE(why(reduced, "precision:amp_bf16").find("is a collective"), std::string::npos);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
