// Whatever happens to a workload file or a config.json: is it read, or refused with a sentence, and nothing else? Does
// what is read become a sound step, or a sentence?
#include <gtest/gtest.h>

#include <filesystem>
#include <random>

#include "models/workload/generate/generate.h"
#include "models/workload/generate/configuration/workload_file.h"
#include "sim/error.h"
#include "sim/trace/trace_check.h"
#include "tests/support/damage.h"
#include "tests/support/scratch_folder.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

struct Counts {
  int read = 0, refused = 0, generated = 0, not_generated = 0;
};

// Small ones only: a step of ten thousand layers is as right as one of four, and takes its time.
bool is_small(const TrainingJob& job) {
  std::int64_t parts = job.model.layers * (1 + job.model.experts) + job.recipe.loss_chunks;
  for (const std::int64_t b : job.model.blocks) parts += b;
  return parts * job.recipe.accumulation < 40;
}

void generate(const TrainingJob& job, const std::string& text, Counts& counts) {
  if (!is_small(job)) return;
  try {
    const Trace trace = generate_step(job.model, job.recipe);
    EXPECT_TRUE(check(trace).empty()) << check(trace).front() << "\nof\n" << text;
    ++counts.generated;
  } catch (const UsageError& error) {
    EXPECT_GT(std::string(error.what()).size(), 20u);
    ++counts.not_generated;
  }
}

template <class Parse>
void feed(const std::string& text, Parse&& parse, Counts& counts) {
  try {
    const TrainingJob job = parse(text);
    EXPECT_GE(parameter_count(job.model), 0) << text;
    ++counts.read;
    generate(job, text, counts);
  } catch (const InputError& error) {
    EXPECT_TRUE(std::string(error.what()).starts_with("fuzzed")) << error.what();
    EXPECT_GT(std::string(error.what()).size(), 20u);
    EXPECT_LT(std::string(error.what()).size(), 4000u);
    ++counts.refused;
  }
}

constexpr const char* kTexts[] = {
    R"(model { layers: 2 width: 64 heads: 4 key_value_heads: 2 inner: 96 vocabulary: 100 longest: 32 normalization: rms_norm
  activation: swiglu positions: rotary bias: false query_key_value_bias: false joint_query_key_value: false
  tied_embedding: false }
recipe { batch: 2 sequence: 16 precision: bf16 optimizer: adamw accumulation: 2 checkpoint: full data_parallel: 2 })",
    R"(description: "small"
model { architecture: resnet blocks: [1, 2] image: 32 classes: 10 }
recipe { batch: 2 precision: amp_fp16 optimizer: sgd optimizer_kernels: fused set_to_none: false })",
    R"(base: "bert-base"
model { layers: 1 width: 32 heads: 2 vocabulary: 50 longest: 16 dropout: 0.5 }
recipe { sequence: 8 precision: fp16 master_parameters: true attention: plain })",
    R"(model { architecture: vgg channels: 4 channels: 0 channels: 8 image: 16 classes: 3 dropout: 0.25 batch_norm: true }
recipe { batch: 3 optimizer: adamw_8bit optimizer_in_backward: true })",
    R"(base: "mixtral-8x7b"
model { layers: 1 width: 32 heads: 4 key_value_heads: 2 inner: 16 vocabulary: 64 experts: 4 experts_per_token: 2 }
recipe { batch: 4 sequence: 8 execution: eager loss_chunks: 2 })",
    R"(base: "vit-b16" model { layers: 1 width: 32 heads: 2 image: 32 patch: 16 classes: 5 } recipe { batch: 2 })"};

constexpr const char* kConfigs[] = {
    R"({"model_type": "llama", "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
  "num_key_value_heads": 2, "vocab_size": 100, "max_position_embeddings": 32, "hidden_act": "silu",
  "attention_bias": false, "tie_word_embeddings": true, "rope_theta": 500000.0})",
    R"({"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "n_layer": 2, "n_embd": 32, "n_head": 2,
  "n_positions": 16, "vocab_size": 50, "resid_pdrop": 0.1, "embd_pdrop": 0.1, "attn_pdrop": 0.1, "n_inner": null})",
    R"({"model_type": "mixtral", "hidden_size": 32, "intermediate_size": 16, "num_hidden_layers": 1,
  "num_attention_heads": 4, "num_key_value_heads": 2, "num_local_experts": 4, "num_experts_per_tok": 2,
  "vocab_size": 64, "max_position_embeddings": 16, "sliding_window": 8})",
    R"({"model_type": "qwen3_moe", "hidden_size": 32, "moe_intermediate_size": 16, "num_hidden_layers": 1, "head_dim": 8,
  "num_attention_heads": 4, "num_key_value_heads": 2, "num_experts": 4, "num_experts_per_tok": 2,
  "vocab_size": 64, "max_position_embeddings": 16, "mlp_only_layers": [], "decoder_sparse_step": 1})",
    R"({"model_type": "phi3", "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1, "num_attention_heads": 4,
  "vocab_size": 64, "max_position_embeddings": 16, "resid_pdrop": 0.0, "partial_rotary_factor": 0.75})",
    R"({"model_type": "granite", "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1,
  "num_attention_heads": 4, "vocab_size": 64, "max_position_embeddings": 16, "logits_scaling": 8.0})",
    R"({"model_type": "starcoder2", "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1,
  "num_attention_heads": 4, "vocab_size": 64, "max_position_embeddings": 16, "use_bias": true})",
    R"({"model_type": "vit", "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2,
  "intermediate_size": 64, "image_size": 32, "patch_size": 16, "id2label": {"0": "cat", "1": "dog"}})",
    R"({"model_type": "resnet", "depths": [1, 1], "hidden_sizes": [256, 512], "num_labels": 7})",
    R"({"model_type": "bert", "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2,
  "intermediate_size": 64, "vocab_size": 40, "max_position_embeddings": 16, "type_vocab_size": 2})",
    R"({"model_type": "gemma2", "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
  "num_key_value_heads": 2, "head_dim": 8, "vocab_size": 64, "max_position_embeddings": 16, "sliding_window": 8,
  "attn_logit_softcapping": 50.0, "final_logit_softcapping": null, "hidden_activation": "gelu_pytorch_tanh"})",
    R"({"model_type": "gemma3", "text_config": {"model_type": "gemma3_text", "hidden_size": 32, "intermediate_size": 48,
  "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "vocab_size": 64,
  "max_position_embeddings": 16, "sliding_window": 8, "layer_types": ["sliding_attention", "full_attention"]}})",
    R"({"model_type": "olmo2", "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1,
  "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 64, "max_position_embeddings": 16})",
    R"({"model_type": "gpt_neox", "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 1,
  "num_attention_heads": 4, "vocab_size": 64, "max_position_embeddings": 16, "rotary_pct": 0.25,
  "use_parallel_residual": true, "hidden_act": "gelu"})",
    R"({"model_type": "opt", "hidden_size": 32, "ffn_dim": 64, "num_hidden_layers": 1, "num_attention_heads": 4,
  "vocab_size": 64, "max_position_embeddings": 16, "word_embed_proj_dim": 32, "dropout": 0.1,
  "do_layer_norm_before": true, "activation_function": "relu"})",
    R"({"model_type": "phi", "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 1, "num_attention_heads": 4,
  "vocab_size": 64, "max_position_embeddings": 16, "partial_rotary_factor": 0.5, "resid_pdrop": 0.1,
  "embd_pdrop": 0.0, "hidden_act": "gelu_new"})",
    R"({"model_type": "bloom", "hidden_size": 32, "n_layer": 1, "n_head": 4, "vocab_size": 64, "seq_length": 16})",
    R"({"model_type": "falcon", "hidden_size": 64, "num_hidden_layers": 1, "num_attention_heads": 4, "vocab_size": 64,
  "max_position_embeddings": 16, "new_decoder_architecture": true, "num_kv_heads": 2, "bias": false, "alibi": false})",
    R"({"model_type": "roberta", "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2,
  "intermediate_size": 64, "vocab_size": 40, "max_position_embeddings": 18, "type_vocab_size": 1, "pad_token_id": 1})",
    R"({"model_type": "distilbert", "dim": 32, "n_layers": 1, "n_heads": 2, "hidden_dim": 64, "vocab_size": 40,
  "max_position_embeddings": 16, "dropout": 0.1, "attention_dropout": 0.1})"};

TEST(WorkloadFuzz, DamagedWorkloadFilesAreReadOrRefusedInASentence) {
  std::mt19937_64 random(20260711);
  Counts counts;
  for (int round = 0; round < 6000; ++round)
    feed(
        damaged(kTexts[static_cast<std::size_t>(round) % std::size(kTexts)], random),
        [](const std::string& text) { return parse_training_job(text, "fuzzed.textproto"); }, counts);
  EXPECT_GT(counts.read, 300);
  EXPECT_GT(counts.refused, 2000);
  EXPECT_GT(counts.generated, 100);
}

TEST(WorkloadFuzz, DamagedConfigsAreReadOrRefusedInASentence) {
  std::mt19937_64 random(20260712);
  Counts counts;
  for (int round = 0; round < 6000; ++round)
    feed(
        damaged(kConfigs[static_cast<std::size_t>(round) % std::size(kConfigs)], random),
        [](const std::string& text) { return parse_hugging_face_config(text, "fuzzed.json"); }, counts);
  EXPECT_GT(counts.read, 300);
  EXPECT_GT(counts.refused, 2000);
  EXPECT_GT(counts.generated, 100);
}

TEST(WorkloadFuzz, DamagedSettingsChangeAFieldOrAreRefused) {
  std::mt19937_64 random(20260713);
  const TrainingJob job = load_training_job("gpt2-124m");
  const char* settings[] = {"batch=2",      "model.layers=4",          "blocks=3,4,6,3", "precision=amp_fp16",
                            "dropout=0.25", "recipe.set_to_none=false"};
  int taken = 0;
  for (int round = 0; round < 5000; ++round) {
    TrainingJob changed = job;
    try {
      set(changed, damaged(settings[static_cast<std::size_t>(round) % std::size(settings)], random));
      ++taken;
    } catch (const UsageError& error) {
      EXPECT_GT(std::string(error.what()).size(), 20u);
      EXPECT_EQ(changed.recipe.batch, job.recipe.batch);
    }
  }
  EXPECT_GT(taken, 100);
}

TEST(WorkloadFuzz, FilesOfBytesAndFilesThatAreTooLargeAreRefused) {
  const ScratchFolder folder;
  std::mt19937_64 random(20260714);
  for (int round = 0; round < 200; ++round) {
    std::string bytes(random() % 400, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    write_content(folder / "x.textproto", bytes);
    EXPECT_THROW(load_training_job((folder / "x.textproto").string()), InputError);
  }
  write_content(folder / "x.textproto", std::string(2 << 20, ' '));
  EXPECT_THROW(load_training_job((folder / "x.textproto").string()), InputError);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
