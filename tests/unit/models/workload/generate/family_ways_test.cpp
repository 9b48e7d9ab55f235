// Families of transformers in every way to run a step: sound where it is generated, refused by a sentence where not.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "models/workload/generate/configuration/model_size.h"
#include "models/workload/generate/configuration/workload_file.h"
#include "models/workload/generate/generate.h"
#include "sim/error.h"
#include "sim/trace/trace_check.h"
#include "tests/support/races.h"
#include "tests/support/step_lines.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

TrainingJob family_job(const std::string& family, const std::string& settings) {
  TrainingJob job = load_training_job(family);
  std::vector<std::string> all{"layers=2",    "width=256", "heads=4",       "vocabulary=512",
                               "sequence=64", "batch=2",   "precision=bf16"};
  if (job.model.key_value_heads > 1) all.push_back("key_value_heads=2");
  if (job.model.head_size != 0) all.push_back("head_size=64");
  for (std::size_t at = 0; at < settings.size();) {
    const std::size_t end = std::min(settings.find(' ', at), settings.size());
    all.push_back(settings.substr(at, end - at));
    at = end + 1;
  }
  set_all(job, all);
  return job;
}

// What a family refuses, or "".
std::string refusal_of(const std::string& family, const std::string& settings) {
  try {
    const TrainingJob job = family_job(family, settings);
    generate_step(job.model, job.recipe);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

double sum_of_flops(const Trace& t, Phase phase) {
  double sum = 0;
  for (const Op& op : t.ops) sum += op.phase == phase ? op.flops : 0;
  return sum;
}

class FamilyWays : public ::testing::TestWithParam<std::tuple<const char*, const char*>> {};

TEST_P(FamilyWays, AreSoundAndFreeWhatTheyAllocate) {
  const auto& [family, settings] = GetParam();
  const TrainingJob job = family_job(family, settings);
  const Trace t = generate_step(job.model, job.recipe);
  EXPECT_TRUE(check(t).empty()) << check(t).front();
  EXPECT_TRUE(races(t).empty()) << races(t).front();
  Bytes left = 0;
  for (const Op& op : t.ops)
    left += op.kind == OpKind::alloc  ? t.storages[op.target].bytes
            : op.kind == OpKind::free ? -t.storages[op.target].bytes
                                      : 0;
  EXPECT_LE(left, 4 * 4 + 4) << "more than the loss is left";
  Bytes parameters = 0;
  for (const Storage& s : t.storages) parameters += s.kind == StorageKind::gradient ? s.bytes : 0;
  if (job.recipe.lora_rank == 0) {
    EXPECT_EQ(parameters, bytes_of(job.recipe.precision == Precision::amp_bf16 ? DataType::fp32 : DataType::bf16) *
                              parameter_count(job.model))
        << "gradients of all parameters";
  }
}

constexpr const char* kFamilies[] = {"gemma-2b",    "gemma2-2b",    "gemma3-1b",      "olmo2-1b",
                                     "pythia-160m", "opt-125m",     "phi-2",          "falcon-7b",
                                     "falcon-40b",  "roberta-base", "distilbert-base"};

INSTANTIATE_TEST_SUITE_P(Settings, FamilyWays,
                         ::testing::Combine(::testing::ValuesIn(kFamilies),
                                            ::testing::Values("attention=flash", "attention=plain", "checkpoint=full",
                                                              "checkpoint=selective", "lora_rank=8",
                                                              "lora_rank=8 checkpoint=full", "precision=amp_bf16",
                                                              "precision=fp8", "accumulation=2", "data_parallel=4",
                                                              "optimizer_in_backward=true", "full_attention_every=0")));

INSTANTIATE_TEST_SUITE_P(Bloom, FamilyWays,
                         ::testing::Combine(::testing::Values("bloom-560m"),
                                            ::testing::Values("attention=plain", "checkpoint=full",
                                                              "checkpoint=selective", "lora_rank=8",
                                                              "precision=amp_bf16", "precision=fp8", "heads=8")));

// A checkpointed layer runs again what it ran, and keeps its input alone.
TEST(FamilyLayers, WhereCheckpointedRunAgain) {
  for (const char* family : kFamilies) {
    const TrainingJob one = family_job(family, "attention=flash"), two = family_job(family, "checkpoint=full");
    const Trace kept = generate_step(one.model, one.recipe), again = generate_step(two.model, two.recipe);
    EXPECT_EQ(sum_of_flops(kept, Phase::forward), sum_of_flops(again, Phase::forward)) << family;
    EXPECT_EQ(sum_of_flops(kept, Phase::backward), sum_of_flops(again, Phase::backward)) << family;
    EXPECT_GT(sum_of_flops(again, Phase::recompute), 0) << family;
    EXPECT_LT(memory_of(again).saved.size(), memory_of(kept).saved.size()) << family;
  }
}

// 6 FLOPs per parameter of a matrix and token: each projection, and the output layer.
TEST(FamilyLayers, MultiplyEachWeightThreeTimes) {
  for (const char* family : kFamilies) {
    const TrainingJob job = family_job(family, "optimizer=none");
    const Trace t = generate_step(job.model, job.recipe);
    double gemm = 0;
    for (const Op& op : t.ops) gemm += op.operator_class == OperatorClass::gemm ? op.flops : 0;
    const Model& m = job.model;
    const double queries = static_cast<double>(m.heads * head_size(m));
    const double keys = static_cast<double>(key_value_heads(m) * head_size(m));
    const double width = static_cast<double>(m.width), in = static_cast<double>(inner(m));
    double weights =
        static_cast<double>(m.layers) * (width * (2 * queries + 2 * keys) + (is_gated(m) ? 3 : 2) * width * in) +
        width * static_cast<double>(m.vocabulary);
    if (m.architecture == Architecture::encoder) weights += width * width;
    EXPECT_EQ(gemm, 6.0 * 2 * 64 * weights) << family;
  }
}

// Only the layers that have a window see less than all tokens before, in the mask of plain attention.
TEST(FamilyLayers, WithAWindowHaveAMaskOfTheirOwn) {
  const auto masks = [](const char* settings) {
    const TrainingJob job = family_job("gemma2-2b", settings);
    const Trace t = generate_step(job.model, job.recipe);
    int count = 0;
    for (const Op& op : t.ops) count += op.kind == OpKind::kernel && t.strings[op.operator_name] == "aten::where";
    return count;
  };
  EXPECT_EQ(masks("attention=plain"), 2);
  EXPECT_EQ(masks("attention=plain sliding_window=0 full_attention_every=0"), 1);
  EXPECT_EQ(masks("attention=flash"), 0);
}

TEST(FamilyLayers, InDividedJobsAreMegatronsOrRefused) {
  EXPECT_EQ(refusal_of("gemma-2b", "tensor=2"), "");
  EXPECT_EQ(refusal_of("gemma-2b", "pipeline=2 accumulation=4"), "");
  EXPECT_EQ(refusal_of("gemma2-2b", "tensor=2"), "");
  EXPECT_EQ(refusal_of("gemma3-1b", "pipeline=2 accumulation=4"), "");
  EXPECT_EQ(refusal_of("opt-125m", "tensor=2 dropout=0"), "");
  EXPECT_EQ(refusal_of("opt-125m", "pipeline=2 accumulation=4 dropout=0"), "");
  const std::tuple<const char*, const char*, const char*> refused[] = {
      {"gemma2-2b", "tensor=2 attention=plain", "attention_softcapping with plain attention"},
      {"olmo2-1b", "tensor=2", "a layer_order but pre_norm"},
      {"pythia-160m", "tensor=2", "a layer_order but pre_norm"},
      {"opt-125m", "tensor=2", "dropout behind attention"},
      {"phi-2", "pipeline=2", "a layer_order but pre_norm"},
      {"bloom-560m", "tensor=2", "positions: alibi"},
      {"falcon-40b", "tensor=2", "a layer_order but pre_norm"},
      {"roberta-base", "tensor=2", "expected a decoder"},
      {"gemma-2b", "tensor=2 key_value_heads=2 parallel_framework=torchtitan", "torchtitan has no such layers"}};
  for (const auto& [family, settings, sentence] : refused)
    EXPECT_NE(refusal_of(family, settings).find(sentence), std::string::npos)
        << family << " " << settings << ": " << refusal_of(family, settings);
}

// Gemma's layers by Megatron-LM: GeGLU in one kernel, a scaled embedding, norms of one operator.
TEST(FamilyLayers, OfGemmaByMegatronAreItsFusedOnes) {
  const auto forward_kernels = [](const char* family, const std::string& settings, const char* name) {
    const TrainingJob job = family_job(family, settings);
    const Trace t = generate_step(job.model, job.recipe);
    int count = 0;
    for (const Op& op : t.ops)
      count += op.kind == OpKind::kernel && op.phase == Phase::forward && t.strings[op.operator_name] == name;
    return count;
  };
  EXPECT_EQ(forward_kernels("gemma-2b", "tensor=2", "megatron::geglu"), 2);
  EXPECT_EQ(forward_kernels("gemma-2b", "tensor=2", "aten::_fused_rms_norm"), 5);
  EXPECT_EQ(forward_kernels("gemma2-2b", "tensor=2", "aten::_fused_rms_norm"), 9) << "two more in each layer";
  EXPECT_EQ(forward_kernels("gemma-2b", "tensor=2", "aten::mul") -
                forward_kernels("gemma-2b", "tensor=2 scaled_embedding=false", "aten::mul"),
            1);
  EXPECT_EQ(forward_kernels("gemma2-2b", "tensor=2", "aten::tanh"), 1) << "of the logits";
}

TEST(FamilyLayers, RefuseWhatTheirClassHasNot) {
  const std::tuple<const char*, const char*, const char*> refused[] = {
      {"gemma2-2b", "execution=compiled", "execution: compiled"},
      {"pythia-160m", "execution=native", "execution"},
      {"opt-125m", "fused_kernels=true", "fused_kernels"},
      {"olmo2-1b", "liger_kernels=true", "liger_kernels"},
      {"phi-2", "tile_factor=2", "tile_factor"},
      {"falcon-7b", "precision=fp8_transformer_engine", "fp8_transformer_engine"},
      {"bloom-560m", "attention=flash", "attention but plain"},
      {"gemma2-2b", "attention=cudnn", "attention_softcapping"},
      {"gemma2-2b", "loss_chunks=4", "logit_softcapping"},
      {"phi-2", "fused_linear_loss=true", "output_bias"}};
  for (const auto& [family, settings, sentence] : refused)
    EXPECT_NE(refusal_of(family, settings).find(sentence), std::string::npos)
        << family << " " << settings << ": " << refusal_of(family, settings);
}

// A structure that a class does not have is told with what it has.
TEST(FamilyLayers, HaveTheStructureOfTheirClass) {
  const auto wrong = [](const char* family, const char* setting) -> std::string {
    TrainingJob job = load_training_job(family);
    try {
      set_all(job, {setting});
    } catch (const UsageError& error) {
      return error.what();
    }
    return "(accepted)";
  };
  EXPECT_NE(
      wrong("opt-125m", "positions=rotary").find("with modules: opt a model is expected to have positions: learned"),
      std::string::npos)
      << wrong("opt-125m", "positions=rotary");
  EXPECT_NE(wrong("gemma-2b", "activation=swiglu").find("activation: geglu"), std::string::npos);
  EXPECT_NE(wrong("gemma-2b", "experts=4").find("experts"), std::string::npos);
  EXPECT_NE(wrong("pythia-160m", "key_value_heads=2").find("key_value_heads: 0"), std::string::npos);
  EXPECT_NE(wrong("llama3-8b", "rotary_size=64").find("with modules: plain"), std::string::npos);
  EXPECT_NE(wrong("llama3-8b", "modules=olmo2").find("layer_order: reordered_norm"), std::string::npos);
  EXPECT_NE(wrong("pythia-160m", "rotary_size=200").find("more than the size of a head"), std::string::npos);
  EXPECT_NE(wrong("pythia-160m", "rotary_size=15").find("even size"), std::string::npos);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
