// Does a workload file, a config.json, a setting mean what it says, and is what makes no sense refused with its place?
#include <gtest/gtest.h>

#include <cstdlib>

#include "models/workload/generate/configuration/workload_fields.h"
#include "models/workload/generate/configuration/workload_file.h"
#include "sim/error.h"
#include "tests/support/scratch_folder.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

template <class Error>
std::string refusal(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& error) {
    return error.what();
  }
  return "(accepted)";
}

std::string refused_text(const std::string& text) {
  return refusal<InputError>([&] { parse_training_job(text, "mine.textproto"); });
}
std::string refused_setting(const std::string& setting) {
  TrainingJob job = load_training_job("gpt2-124m");
  return refusal<UsageError>([&] { set(job, setting); });
}

constexpr const char* kSmall = "model { layers: 2 width: 64 heads: 4 vocabulary: 100 longest: 32 }";

// Numbers that their publishers, torchvision or transformers print.
TEST(ParameterCount, PublishedNetworks) {
  const std::pair<const char*, std::int64_t> published[] = {
      {"gpt2-124m", 124439808},
      {"gpt2-355m", 354823168},
      {"gpt2-774m", 774030080},
      {"gpt2-1.5b", 1557611200},
      {"llama2-7b", 6738415616},
      {"llama2-13b", 13015864320},
      {"llama2-70b", 68976648192},
      {"llama3-8b", 8030261248},
      {"llama3-70b", 70553706496},
      {"llama3-405b", 405853388800},
      {"llama3.2-1b", 1235814400},
      {"llama3.2-3b", 3212749824},
      {"mixtral-8x7b", 46702792704},
      {"mistral-7b", 7241732096},
      {"llama3.1-8b", 8030261248},
      {"llama3.1-70b", 70553706496},
      {"llama3.1-405b", 405853388800},
      {"qwen2.5-0.5b", 494032768},
      {"qwen2.5-1.5b", 1543714304},
      {"qwen2.5-7b", 7615616512},
      {"qwen2.5-14b", 14770033664},
      {"qwen2.5-32b", 32763876352},
      {"qwen2.5-72b", 72706203648},
      {"qwen3-0.6b", 596049920},
      {"qwen3-1.7b", 1720574976},
      {"qwen3-4b", 4022468096},
      {"qwen3-8b", 8190735360},
      {"qwen3-14b", 14768307200},
      {"qwen3-32b", 32762123264},
      {"bert-base", 109514298},
      {"bert-large", 335174458},
      {"vit-b16", 86567656},
      {"vit-l16", 304326632},
      {"resnet50", 25557032},
      {"resnet101", 44549160},
      {"resnet152", 60192808},
      {"vgg13", 133047848},
      {"vgg16", 138357544},
      // As many as the classes of transformers 5.23 have with the published config.json (counted on the meta device).
      {"gemma-2b", 2506172416},
      {"gemma-7b", 8537680896},
      {"gemma2-2b", 2614341888},
      {"gemma2-9b", 9241705984},
      {"gemma2-27b", 27227128320},
      {"gemma3-1b", 999885952},
      {"gemma3-4b", 3880263168},
      {"gemma3-12b", 11766034176},
      {"gemma3-27b", 27009346304},
      {"olmo2-1b", 1484916736},
      {"olmo2-7b", 7298617344},
      {"olmo2-13b", 13716198400},
      {"olmo2-32b", 32234279936},
      {"pythia-160m", 162322944},
      {"pythia-1.4b", 1414647808},
      {"pythia-2.8b", 2775208960},
      {"pythia-6.9b", 6857302016},
      {"pythia-12b", 11846072320},
      {"gpt-neox-20b", 20554567680},
      {"opt-125m", 125239296},
      {"opt-1.3b", 1315758080},
      {"opt-2.7b", 2651596800},
      {"opt-6.7b", 6658473984},
      {"opt-13b", 12853473280},
      {"opt-30b", 29974540288},
      {"opt-66b", 65719701504},
      {"phi-1.5", 1418270720},
      {"phi-2", 2779683840},
      {"bloom-560m", 559214592},
      {"bloom-7b1", 7069016064},
      {"bloom-176b", 176247271424},
      {"falcon-7b", 6921720704},
      {"falcon-40b", 41303293952},
      {"falcon-180b", 178557088768},
      {"roberta-base", 124697433},
      {"roberta-large", 355412057},
      {"xlm-roberta-base", 278295186},
      {"xlm-roberta-large", 560142482},
      {"distilbert-base", 66985530},
  };
  for (const auto& [name, count] : published) EXPECT_EQ(parameter_count(load_training_job(name).model), count) << name;
}

TEST(ParameterCount, EachSettingCounts) {
  const auto with = [](const std::vector<std::string>& settings) {
    TrainingJob job = parse_training_job(kSmall, "small");
    set_all(job, settings);
    return parameter_count(job.model);
  };
  const std::int64_t small = with({});
  EXPECT_EQ(small, 100 * 64 + 32 * 64 + 2 * (12 * 64 * 64 + 13 * 64) + 2 * 64);
  EXPECT_EQ(with({"tied_embedding=false"}) - small, 100 * 64);
  EXPECT_EQ(with({"normalization=rms_norm"}) - small, -5 * 64);
  EXPECT_EQ(with({"positions=rotary"}) - small, -32 * 64);
  EXPECT_EQ(with({"query_key_norm=true"}) - small, 2 * 2 * 2 * 16);
  EXPECT_EQ(with({"query_key_value_bias=false"}) - small, -2 * 3 * 64);
  EXPECT_EQ(with({"bias=false"}) - small, -2 * (64 + 4 * 64 + 64));
  EXPECT_EQ(with({"key_value_heads=1"}) - small, -2 * 2 * (64 + 1) * 48);
  EXPECT_EQ(with({"head_size=32"}) - small, 2 * (4 * 64 * 64 + 3 * 64));
  EXPECT_EQ(with({"inner=100"}) - small, -2 * (2 * 64 + 1) * 156);
  EXPECT_EQ(with({"activation=swiglu"}) - small, 2 * (64 * 256 + 256));
  EXPECT_EQ(with({"experts=3", "experts_per_token=1"}) - small, 2 * (2 * (2 * 64 * 256 + 256 + 64) + 3 * 64));
  TrainingJob vgg = load_training_job("vgg13");
  set(vgg, "batch_norm=true");
  EXPECT_EQ(parameter_count(vgg.model), 133053736) << "torchvision's vgg13_bn";
}

TEST(WorkloadFile, EveryKnownWorkloadLoadsAndHasASentence) {
  const auto known = list_workloads();
  EXPECT_GE(known.size(), 28u);
  for (const auto& [name, description] : known) {
    const TrainingJob job = load_training_job(name);
    EXPECT_EQ(job.model.name, name);
    EXPECT_GT(description.size(), 15u) << name;
    EXPECT_GT(parameter_count(job.model), 1000000) << name;
    EXPECT_TRUE(job.notes.empty()) << name;
  }
}

// Takes the place of any member of an aggregate.
struct Anything {
  template <class T>
  operator T() const;
};
template <class T, class... Members>
constexpr std::size_t member_count() {
  if constexpr (requires { T{Members{}..., Anything{}}; })
    return member_count<T, Members..., Anything>();
  else
    return sizeof...(Members);
}

// A member that somebody adds must become a key.
TEST(WorkloadFile, EveryMemberIsAKey) {
  TrainingJob job = load_training_job("gpt2-124m");
  std::vector<std::string> keys;
  for_each_model_field(job.model, [&](const char* name, auto&) { keys.push_back(name); });
  EXPECT_EQ(keys.size(), member_count<Model>());
  const std::size_t of_model = keys.size();
  for_each_recipe_field(job.recipe, [&](const char* name, auto&) { keys.push_back(name); });
  EXPECT_EQ(keys.size() - of_model, member_count<Recipe>() - 1 + member_count<ModelParallel>());
  const std::string all = refused_setting("nothing=1");
  std::size_t listed = 1;
  for (const char c : all.substr(all.find("expected one of"))) listed += c == ',' ? 1 : 0;
  EXPECT_EQ(listed, keys.size()) << all;
  for (const std::string& key : keys) EXPECT_NE(all.find(key), std::string::npos) << key;
}

// Keys of families of transformers, of which none allows all.
TEST(WorkloadFile, EveryKeyOfAFamilyIsRead) {
  const auto read = [](const std::string& base, const std::string& keys) {
    return parse_training_job("base: \"" + base + "\" model { " + keys + " }", "x").model;
  };
  const Model gemma = read("gemma-7b",
                           "layer_order: sandwich_norm sliding_window: 55 full_attention_every: 4 "
                           "local_rotary: true scaled_embedding: false attention_softcapping: true "
                           "logit_softcapping: true");
  EXPECT_EQ(gemma.modules, Modules::gemma);
  EXPECT_EQ(gemma.normalization, Normalization::rms_norm_zero_centered);
  EXPECT_EQ(gemma.activation, Activation::geglu);
  EXPECT_EQ(gemma.layer_order, LayerOrder::sandwich_norm);
  EXPECT_EQ(gemma.sliding_window, 55);
  EXPECT_EQ(gemma.full_attention_every, 4);
  EXPECT_TRUE(gemma.local_rotary && !gemma.scaled_embedding);
  EXPECT_TRUE(gemma.attention_softcapping && gemma.logit_softcapping);
  const Model phi = read("phi-2", "rotary_size: 12 output_bias: false residual_dropout_only: false");
  EXPECT_EQ(phi.modules, Modules::phi);
  EXPECT_EQ(phi.layer_order, LayerOrder::parallel_shared_norm);
  EXPECT_EQ(phi.activation, Activation::gelu_tanh_in_parts);
  EXPECT_EQ(phi.rotary_size, 12);
  EXPECT_FALSE(phi.output_bias || phi.residual_dropout_only);
  const Model bloom = read("bloom-560m", "normalized_embedding: false");
  EXPECT_EQ(bloom.modules, Modules::bloom);
  EXPECT_EQ(bloom.positions, Positions::alibi);
  EXPECT_EQ(bloom.activation, Activation::gelu_tanh_recomputed);
  EXPECT_FALSE(bloom.normalized_embedding);
  const Model roberta = read("roberta-base", "position_offset: 13 token_types: 14");
  EXPECT_EQ(roberta.modules, Modules::roberta);
  EXPECT_EQ(roberta.position_offset, 13);
  EXPECT_EQ(roberta.token_types, 14);
  EXPECT_EQ(parameter_count(roberta) - parameter_count(load_training_job("roberta-base").model), (11 + 13) * 768);
  const Model olmo = load_training_job("olmo2-1b").model;
  EXPECT_EQ(olmo.layer_order, LayerOrder::reordered_norm);
  EXPECT_TRUE(olmo.query_key_norm_over_heads);
  EXPECT_EQ(load_training_job("pythia-160m").model.layer_order, LayerOrder::parallel);
  EXPECT_EQ(load_training_job("pythia-160m").model.modules, Modules::gpt_neox);
  EXPECT_EQ(load_training_job("opt-125m").model.modules, Modules::opt);
  EXPECT_EQ(load_training_job("falcon-7b").model.modules, Modules::falcon);
  EXPECT_EQ(load_training_job("distilbert-base").model.modules, Modules::distilbert);
}

// Every key of the schema reaches its member, and every value of an enumeration is the member's of that name.
TEST(WorkloadFile, EveryKeyIsRead) {
  const TrainingJob job = parse_training_job(R"(
    model { name: "all" architecture: decoder layers: 3 width: 64 heads: 8 key_value_heads: 4 head_size: 16 inner: 96
            vocabulary: 1000 longest: 77 normalization: rms_norm_in_parts activation: swiglu positions: rotary
            bias: false query_key_value_bias: false joint_query_key_value: false tied_embedding: false dropout: 0.25
            experts: 6 experts_per_token: 2 image: 32 patch: 4 classes: 10 blocks: [1, 2] channels: [8, 0]
            batch_norm: true rotary_in_fp32: true expanded_key_value: true query_key_norm: true }
    recipe { batch: 5 sequence: 66 precision: amp_fp16 attention: plain execution: compiled optimizer: adamw_8bit
             optimizer_kernels: fused optimizer_in_backward: true accumulation: 7 master_parameters: true loss_chunks: 8
             loss_in_fp32: false checkpoint: full activation_offload: true lora_rank: 9 data_parallel: 10
             set_to_none: false sums_in_place: false gradient_reduction: after_backward
             gradients_as_bucket_views: true fused_kernels: true compiled_loss: false
             weights_in_nf4: true lora_dropout: 0.5 fused_linear_loss: true lora_in_fp32: true
             returned_logits: backward shifted_logits: true liger_kernels: true synchronizing_attention: true
             paged_optimizer: true embedding_states_in_fp32: true })",
                                             "x");
  const Model& m = job.model;
  EXPECT_EQ(m.name, "all");
  EXPECT_EQ(
      (std::vector<std::int64_t>{m.layers, m.width, m.heads, m.key_value_heads, m.head_size, m.inner, m.vocabulary,
                                 m.longest, m.experts, m.experts_per_token, m.image, m.patch, m.classes}),
      (std::vector<std::int64_t>{3, 64, 8, 4, 16, 96, 1000, 77, 6, 2, 32, 4, 10}));
  EXPECT_EQ(m.normalization, Normalization::rms_norm_in_parts);
  EXPECT_EQ(m.activation, Activation::swiglu);
  EXPECT_EQ(m.positions, Positions::rotary);
  EXPECT_FALSE(m.bias || m.query_key_value_bias || m.joint_query_key_value || m.tied_embedding);
  EXPECT_EQ(m.dropout, 0.25);
  EXPECT_EQ(m.blocks, (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(m.channels, (std::vector<std::int64_t>{8, 0}));
  EXPECT_TRUE(m.batch_norm && m.rotary_in_fp32 && m.expanded_key_value && m.query_key_norm);
  const Recipe& r = job.recipe;
  EXPECT_EQ((std::vector<std::int64_t>{r.batch, r.sequence, r.accumulation, r.loss_chunks, r.lora_rank,
                                       std::int64_t{r.data_parallel}}),
            (std::vector<std::int64_t>{5, 66, 7, 8, 9, 10}));
  EXPECT_EQ(r.precision, Precision::amp_fp16);
  EXPECT_EQ(r.attention, Attention::plain);
  EXPECT_EQ(r.execution, ExecutionMode::compiled);
  EXPECT_EQ(r.optimizer, OptimizerKind::adamw_8bit);
  EXPECT_EQ(r.optimizer_kernels, OptimizerKernels::fused);
  EXPECT_EQ(r.checkpoint, ActivationCheckpoint::full);
  EXPECT_EQ(r.gradient_reduction, ReductionSchedule::after_backward);
  EXPECT_TRUE(r.optimizer_in_backward && has_master_parameters(r) && r.activation_offload &&
              r.gradients_as_bucket_views && r.fused_kernels && r.weights_in_nf4 && r.fused_linear_loss);
  EXPECT_TRUE(r.lora_in_fp32 && r.shifted_logits && r.liger_kernels && r.synchronizing_attention && r.paged_optimizer &&
              r.embedding_states_in_fp32);
  EXPECT_EQ(r.returned_logits, ReturnedLogits::backward);
  EXPECT_EQ(r.lora_dropout, 0.5);
  EXPECT_FALSE(r.loss_in_fp32 || r.set_to_none || r.sums_in_place || r.compiled_loss);
}

TEST(WorkloadFile, AKeyWithoutItsValueIsNamed) {
  try {
    load_training_job("gpt2-124m:batch");
    FAIL() << "a setting without a value was taken";
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("KEY=VALUE, as in gpt2-124m:batch=2"), std::string::npos) << error.what();
  }
}

TEST(WorkloadFile, EveryValueOfAnEnumerationIsTheHeadersOfThatName) {
  TrainingJob job = parse_training_job(kSmall, "small");
  const auto holds = [&](const char* setting, const auto& member, auto value) {
    set(job, setting);
    EXPECT_EQ(member, value) << setting;
  };
  holds("normalization=rms_norm", job.model.normalization, Normalization::rms_norm);
  holds("normalization=rms_norm_in_parts", job.model.normalization, Normalization::rms_norm_in_parts);
  holds("normalization=layer_norm", job.model.normalization, Normalization::layer_norm);
  holds("activation=relu", job.model.activation, Activation::relu);
  holds("activation=gelu_tanh", job.model.activation, Activation::gelu_tanh);
  holds("activation=swiglu", job.model.activation, Activation::swiglu);
  holds("activation=gelu", job.model.activation, Activation::gelu);
  holds("positions=none", job.model.positions, Positions::none);
  holds("positions=rotary", job.model.positions, Positions::rotary);
  holds("positions=learned", job.model.positions, Positions::learned);
  holds("precision=fp32", job.recipe.precision, Precision::fp32);
  holds("precision=amp_fp16", job.recipe.precision, Precision::amp_fp16);
  holds("precision=amp_bf16", job.recipe.precision, Precision::amp_bf16);
  holds("precision=fp16", job.recipe.precision, Precision::fp16);
  holds("precision=bf16", job.recipe.precision, Precision::bf16);
  holds("precision=fp8", job.recipe.precision, Precision::fp8);
  holds("attention=plain", job.recipe.attention, Attention::plain);
  holds("attention=flash", job.recipe.attention, Attention::flash);
  holds("execution=compiled", job.recipe.execution, ExecutionMode::compiled);
  holds("execution=native", job.recipe.execution, ExecutionMode::native);
  holds("execution=eager", job.recipe.execution, ExecutionMode::eager);
  holds("optimizer=none", job.recipe.optimizer, OptimizerKind::none);
  holds("optimizer=sgd", job.recipe.optimizer, OptimizerKind::sgd);
  holds("optimizer=adam", job.recipe.optimizer, OptimizerKind::adam);
  holds("optimizer=adamw", job.recipe.optimizer, OptimizerKind::adamw);
  holds("optimizer=adamw_8bit", job.recipe.optimizer, OptimizerKind::adamw_8bit);
  holds("optimizer_kernels=fused", job.recipe.optimizer_kernels, OptimizerKernels::fused);
  holds("optimizer_kernels=foreach", job.recipe.optimizer_kernels, OptimizerKernels::foreach);
  holds("gradient_reduction=after_backward", job.recipe.gradient_reduction, ReductionSchedule::after_backward);
  holds("gradient_reduction=overlapped", job.recipe.gradient_reduction, ReductionSchedule::overlapped);
  holds("checkpoint=full", job.recipe.checkpoint, ActivationCheckpoint::full);
  holds("checkpoint=none", job.recipe.checkpoint, ActivationCheckpoint::none);
  holds("architecture=encoder", job.model.architecture, Architecture::encoder);
  holds("architecture=vision", job.model.architecture, Architecture::vision);
  set_all(job, {"architecture=resnet", "blocks=1,2"});
  EXPECT_EQ(job.model.architecture, Architecture::resnet);
  set_all(job, {"architecture=vgg", "channels=8,0"});
  EXPECT_EQ(job.model.architecture, Architecture::vgg);
}

TEST(WorkloadFile, AFewLinesChangeAKnownOne) {
  const ScratchFolder folder;
  write_content(folder / "half.textproto", "base: \"llama3-8b\"\nmodel { layers: 16 }\nrecipe { batch: 3 }\n");
  write_content(folder / "quarter.textproto", "base: \"./half.textproto\" model { layers: 8 blocks: 2 }");
  const TrainingJob half = load_training_job((folder / "half.textproto").string());
  EXPECT_EQ(half.model.name, "half");
  EXPECT_EQ(half.model.layers, 16);
  EXPECT_EQ(half.model.vocabulary, 128256);
  EXPECT_EQ(half.recipe.batch, 3);
  const TrainingJob quarter = load_training_job((folder / "quarter.textproto").string());
  EXPECT_EQ(quarter.model.layers, 8);
  EXPECT_EQ(quarter.model.vocabulary, 128256);
  EXPECT_EQ(quarter.recipe.batch, 3);
  write_content(folder / "config.json", R"({"model_type": "gpt2", "n_layer": 3})");
  write_content(folder / "recipe.textproto", "base: \"./config.json\" recipe { batch: 9 }");
  const TrainingJob configured = load_training_job((folder / "recipe.textproto").string());
  EXPECT_EQ(configured.model.layers, 3);
  EXPECT_EQ(configured.recipe.batch, 9);
  // A list replaces, it does not add.
  EXPECT_EQ(parse_training_job("base: \"resnet50\" model { blocks: [2, 2] }", "x").model.blocks,
            (std::vector<std::int64_t>{2, 2}));
}

TEST(WorkloadFile, BasesThatNameEachOtherAreRefused) {
  const ScratchFolder folder;
  write_content(folder / "a.textproto", "base: \"./b.textproto\"");
  write_content(folder / "b.textproto", "\n  base: \"./a.textproto\"");
  const std::string why = refusal<InputError>([&] { load_training_job((folder / "a.textproto").string()); });
  EXPECT_NE(why.find("do the files name each other?"), std::string::npos) << why;
  write_content(folder / "c.textproto", "base: \"llama3-8c\"");
  const std::string unknown = refusal<InputError>([&] { load_training_job((folder / "c.textproto").string()); });
  EXPECT_NE(unknown.find("c.textproto:1:1: there is no workload \"llama3-8c\" (nearest: \"llama3-8b\")"),
            std::string::npos)
      << unknown;
}

TEST(WorkloadFile, ErrorsSayPlaceFoundExpectedAndNearest) {
  EXPECT_EQ(refused_text("model {\n  layers: 2\n  widht: 64\n}").substr(0, 63),
            "mine.textproto:3:3: unknown key \"widht\" in Model (nearest: \"wid");
  EXPECT_EQ(refused_text("modle { layers: 2 }"),
            "mine.textproto:1:1: unknown key \"modle\" in Workload (nearest: \"model\"); expected one of description, "
            "base, model, recipe.");
  EXPECT_EQ(refused_text("batch: 2"),
            "mine.textproto:1:1: the key \"batch\" stands outside of its block; expected recipe { batch: ... }.");
  EXPECT_EQ(refused_text("recipe { precision: bf61 }"),
            "mine.textproto:1:21: unknown value \"bf61\" of \"precision\" (nearest: \"bf16\"); expected one of fp32, "
            "amp_fp16, amp_bf16, fp16, bf16, fp8, fp8_transformer_engine.");
  EXPECT_EQ(refused_text("model {\n layers: -1 }"), "mine.textproto:2:2: layers is -1; expected 0 to 10000.");
  EXPECT_EQ(refused_text("recipe { precision:\n\n  bf61  # sixteen\n\n attention: flash }").substr(0, 34),
            "mine.textproto:3:3: unknown value ");
  EXPECT_EQ(refused_text("model { dropout: 1 }"),
            "mine.textproto:1:9: dropout is 1; expected at least 0 and less than 1.");
  EXPECT_EQ(refused_text("model { dropout: nan }").substr(0, 40), "mine.textproto:1:9: dropout is nan; expe");
  EXPECT_EQ(refused_text("model { blocks: [1, 0] }"), "mine.textproto:1:9: blocks is 0; expected 1 to 1000.");
  EXPECT_EQ(refused_text("recipe { batch: 0 }"), "mine.textproto:1:10: batch is 0; expected 1 to 10000000.");
  EXPECT_NE(refused_text("recipe { batch: 99999999999999999999 }").find("mine.textproto:1:17: "), std::string::npos);
  EXPECT_NE(refused_text("model { layers: 2 layers: 3 }").find("mine.textproto:1:"), std::string::npos);
  EXPECT_NE(refused_text("model {").find("mine.textproto:1:8: the text is not well formed"), std::string::npos);
  EXPECT_EQ(refused_text(""), "mine.textproto: model.layers is missing or 0; expected at least 1.");
  // A hostile key as long as the file.
  EXPECT_LT(refused_text("model { " + std::string(900000, 'x') + ": 1 }").size(), 1000u);
  EXPECT_LT(refused_text("recipe { precision: " + std::string(900000, 'x') + " }").size(), 1000u);
  EXPECT_LT(refused_text(std::string(100000, '{')).size(), 1000u);
}

TEST(WorkloadFile, WhatMakesNoSenseTogetherIsRefused) {
  const auto refused = [](const std::string& model, const std::string& recipe = "") {
    return refused_text("model { layers: 2 width: 64 heads: 4 vocabulary: 100 longest: 32 " + model + " } recipe { " +
                        recipe + " }");
  };
  EXPECT_EQ(refused(""), "(accepted)");
  EXPECT_NE(refused("key_value_heads: 3").find("model.key_value_heads 3 does not divide model.heads 4"),
            std::string::npos);
  EXPECT_NE(refused("key_value_heads: 8").find("does not divide"), std::string::npos);
  EXPECT_NE(refused("experts: 2").find("expected 1 to model.experts 2"), std::string::npos);
  EXPECT_NE(refused("experts: 2 experts_per_token: 3").find("expected 1 to model.experts 2"), std::string::npos);
  EXPECT_NE(refused("experts_per_token: 3").find("model.experts is 0"), std::string::npos);
  EXPECT_NE(refused("", "sequence: 33").find("positions are learned"), std::string::npos);
  EXPECT_EQ(refused("positions: rotary", "sequence: 33"), "(accepted)");
  EXPECT_NE(refused("positions: rotary head_size: 3").find("cannot be rotated"), std::string::npos);
  EXPECT_NE(refused("", "loss_chunks: 33").find("more than the 32 tokens"), std::string::npos);
  EXPECT_NE(refused_text("model { layers: 2 width: 66 heads: 4 }").find("vocabulary is missing"), std::string::npos);
  EXPECT_NE(refused_text("model { layers: 2 width: 66 heads: 4 vocabulary: 9 longest: 9 }")
                .find("does not divide model.width"),
            std::string::npos);
  EXPECT_NE(refused_text("base: \"vit-b16\" model { patch: 15 }").find("does not divide model.image"),
            std::string::npos);
  EXPECT_NE(refused_text("base: \"vit-b16\" recipe { sequence: 9 }").find("images have no sequence"),
            std::string::npos);
  EXPECT_NE(refused_text("model { architecture: resnet }").find("0 stages"), std::string::npos);
  EXPECT_NE(refused_text("model { architecture: vgg channels: [0, 8] }").find("begins with 0"), std::string::npos);
  EXPECT_NE(refused_text("model { architecture: vgg image: 3 channels: [8, 0, 0] }").find("nothing is left"),
            std::string::npos);
}

TEST(WorkloadFile, NumbersThatWouldFillTheComputerAreRefused) {
  EXPECT_NE(refused_text("base: \"mixtral-8x7b\" model { experts: 10000 layers: 10000 }").find("too many"),
            std::string::npos);
  EXPECT_NE(refused_text("base: \"llama3-8b\" recipe { accumulation: 100000 }").find("too many"), std::string::npos);
  EXPECT_NE(refused_text("base: \"llama3-8b\" recipe { batch: 10000000 }").find("too large"), std::string::npos);
  EXPECT_NE(refused_text("base: \"llama3-8b\" recipe { sequence: 100000000 attention: plain }").find("too large"),
            std::string::npos);
  EXPECT_NE(refused_text("base: \"resnet50\" model { image: 100000 } recipe { batch: 10000000 }").find("too large"),
            std::string::npos);
  EXPECT_EQ(refused_text("base: \"gpt3-175b\" recipe { batch: 512 }"), "(accepted)");
}

TEST(WorkloadSetting, ChangesOneFieldByEitherName) {
  TrainingJob job = load_training_job("llama3-8b");
  set(job, "batch=2");
  set(job, "recipe.sequence=8192");
  set(job, "model.layers=4");
  set(job, "name=mine");
  set(job, "loss_in_fp32=false");
  EXPECT_EQ(job.recipe.batch, 2);
  EXPECT_EQ(job.recipe.sequence, 8192);
  EXPECT_EQ(job.model.layers, 4);
  EXPECT_EQ(job.model.name, "mine");
  EXPECT_FALSE(job.recipe.loss_in_fp32);
  set_all(job, {"heads=48", "width=6144"});
  EXPECT_EQ(job.model.heads, 48);
}

TEST(WorkloadSetting, ErrorsNameTheNearestAndChangeNothing) {
  EXPECT_NE(refused_setting("batsh=2").find("\"batsh=2\": there is no setting \"batsh\" (nearest: \"batch\")"),
            std::string::npos);
  EXPECT_NE(refused_setting("model.batch=2").find("there is no setting \"model.batch\""), std::string::npos);
  EXPECT_NE(refused_setting("batch").find("has no value"), std::string::npos);
  EXPECT_NE(refused_setting("batch=2x").find("\"2x\" is not a whole number"), std::string::npos);
  EXPECT_NE(refused_setting("batch=").find("is not a whole number"), std::string::npos);
  EXPECT_NE(refused_setting("batch=0").find("batch is 0; expected 1 to 10000000"), std::string::npos);
  EXPECT_NE(refused_setting("blocks=3,,4").find("\"\" is not a whole number"), std::string::npos);
  EXPECT_NE(refused_setting("bias=yes").find("expected true or false"), std::string::npos);
  EXPECT_NE(refused_setting("optimizer=adamv").find("(nearest: \"adam\")"), std::string::npos);
  EXPECT_NE(refused_setting("dropout=2").find("less than 1"), std::string::npos);
  EXPECT_NE(refused_setting("heads=7").find("does not divide"), std::string::npos);
  TrainingJob job = load_training_job("gpt2-124m");
  EXPECT_THROW(set_all(job, {"batch=4", "heads=7"}), UsageError);
  EXPECT_EQ(job.recipe.batch, 1);
}

TEST(WorkloadName, SettingsMayFollow) {
  const TrainingJob job = load_training_job("resnet50:batch=2,blocks=1,2,precision=fp32");
  EXPECT_EQ(job.recipe.batch, 2);
  EXPECT_EQ(job.model.blocks, (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(job.recipe.precision, Precision::fp32);
  ASSERT_EQ(job.files.size(), 1u);
  EXPECT_EQ(job.files.front().filename(), "resnet50.textproto");
  EXPECT_EQ(load_training_job("resnet101").files.size(), 2u) << "its base is read too";
  EXPECT_TRUE(names_workload("resnet50:batch=2"));
  EXPECT_TRUE(names_workload("resnet50"));
  EXPECT_FALSE(names_workload("resnet5"));
  EXPECT_FALSE(names_workload("./resnet50"));
  EXPECT_THROW(load_training_job("resnet50:batch"), UsageError);
  EXPECT_THROW(load_training_job("resnet50:batch=x"), UsageError);
}

TEST(WorkloadName, UnknownOnesNameTheNearest) {
  const std::string why = refusal<UsageError>([] { load_training_job("lama3-8b"); });
  EXPECT_NE(why.find("there is no workload \"lama3-8b\" (nearest: \"llama3-8b\")"), std::string::npos) << why;
  EXPECT_NE(refusal<InputError>([] { load_training_job("./nowhere.textproto"); }).find("there is no such file"),
            std::string::npos);
  const ScratchFolder folder;
  EXPECT_NE(refusal<InputError>([&] { load_training_job(folder.path().string() + "/"); }).find("this is a folder"),
            std::string::npos);
}

// A family's name is its smallest network, whatever stands first in the alphabet; else letters decide.
TEST(NearestWorkload, OfAFamilyIsItsSmallest) {
  EXPECT_EQ(nearest_workload("gpt2"), "gpt2-124m");
  EXPECT_EQ(nearest_workload("llama3"), "llama3-8b");
  EXPECT_EQ(nearest_workload("llama3-8c"), "llama3-8b");
  EXPECT_EQ(nearest_workload("gpt3-125b"), "gpt3-175b");
  EXPECT_EQ(nearest_workload(""), "");
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
