// Is a Hugging Face config.json read as transformers reads it, and what is not followed noted or refused?
#include <gtest/gtest.h>

#include "models/workload/generate/configuration/model_size.h"
#include "models/workload/generate/configuration/workload_file.h"
#include "sim/error.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

std::string refused_config(const std::string& json) {
  try {
    parse_hugging_face_config(json, "config.json");
  } catch (const InputError& error) {
    return error.what();
  }
  return "(accepted)";
}

// The published config.json of each family, keys that matter.
TEST(HuggingFaceConfig, FamiliesGiveThePublishedCounts) {
  const auto count = [](const std::string& json) {
    return parameter_count(parse_hugging_face_config(json, "config.json").model);
  };
  EXPECT_EQ(count(R"({"model_type": "gpt2"})"), 124439808);
  EXPECT_EQ(count(R"({"model_type": "gpt2", "n_layer": 24, "n_embd": 1024, "n_head": 16, "n_inner": null})"),
            354823168);
  EXPECT_EQ(count(R"({"model_type": "llama", "num_key_value_heads": null})"), 6738415616);
  EXPECT_EQ(count(R"({"model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "num_key_value_heads": 8,
                      "vocab_size": 128256, "max_position_embeddings": 8192, "rope_theta": 500000.0})"),
            8030261248);
  EXPECT_EQ(count(R"({"model_type": "mistral"})"), 7241732096);
  EXPECT_EQ(count(R"({"model_type": "mixtral"})"), 46702792704);
  EXPECT_EQ(count(R"({"model_type": "qwen2", "hidden_size": 896, "intermediate_size": 4864, "num_hidden_layers": 24,
                      "num_attention_heads": 14, "num_key_value_heads": 2, "vocab_size": 151936,
                      "tie_word_embeddings": true})"),
            494032768);
  EXPECT_EQ(count(R"({"model_type": "qwen3", "hidden_size": 1024, "intermediate_size": 3072, "num_hidden_layers": 28,
                      "num_attention_heads": 16, "num_key_value_heads": 8, "vocab_size": 151936,
                      "tie_word_embeddings": true})"),
            596049920);
  // Qwen3-30B-A3B, StarCoder2-3B, Phi-3-mini and Granite-3.1-2B: as many as transformers 5.23 makes of the same values
  // (counted on the meta device).
  EXPECT_EQ(count(R"({"model_type": "qwen3_moe", "num_hidden_layers": 48, "head_dim": 128, "mlp_only_layers": []})"),
            30532122624);
  // Their authors say 3.3 billion, and of Mixtral 8x7B 12.9 billion.
  const auto active = [](const std::string& json) {
    return active_parameter_count(parse_hugging_face_config(json, "config.json").model);
  };
  EXPECT_NEAR(static_cast<double>(active(R"({"model_type": "qwen3_moe", "num_hidden_layers": 48, "head_dim": 128,
                                             "mlp_only_layers": []})")),
              3.3e9, 0.06e9);
  EXPECT_NEAR(static_cast<double>(active(R"({"model_type": "mixtral"})")), 12.9e9, 0.05e9);
  EXPECT_EQ(active(R"({"model_type": "mistral"})"), 7241732096) << "it has no experts";
  EXPECT_EQ(count(R"({"model_type": "starcoder2"})"), 3030371328);
  EXPECT_EQ(count(R"({"model_type": "phi3"})"), 3821079552);
  EXPECT_EQ(count(R"({"model_type": "granite", "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 40,
                      "num_key_value_heads": 8, "vocab_size": 49155, "tie_word_embeddings": true})"),
            2533531648);
  EXPECT_EQ(count(R"({"model_type": "bert"})"), 109514298);
  EXPECT_EQ(count(R"({"model_type": "vit", "num_labels": 1000})"), 86567656);
  EXPECT_EQ(count(R"({"model_type": "resnet", "num_labels": 1000})"), 25557032);
  EXPECT_EQ(parse_hugging_face_config(R"({"model_type": "vit", "id2label": {"0": "a", "1": "b", "2": "c"}})", "c")
                .model.classes,
            3);
  EXPECT_FALSE(
      parse_hugging_face_config(R"({"model_type": "vit", "qkv_bias": false})", "c").model.query_key_value_bias);
  EXPECT_EQ(parse_hugging_face_config(R"({"model_type": "gpt2", "_name_or_path": "gpt2-xl"})", "c").model.name,
            "gpt2-xl");
}

TEST(HuggingFaceConfig, WhatIsNotFollowedIsNotedOrRefused) {
  const auto notes = [](const char* json) { return parse_hugging_face_config(json, "c").notes; };
  const auto window = [](const char* json) { return parse_hugging_face_config(json, "c").sliding_window; };
  EXPECT_EQ(window(R"({"model_type": "mistral", "sliding_window": null})"), 0);
  EXPECT_EQ(window(R"({"model_type": "mistral", "sliding_window": 4096})"), 4096);
  EXPECT_EQ(window(R"({"model_type": "qwen2", "sliding_window": 4096})"), 0) << "use_sliding_window is false";
  EXPECT_EQ(window(R"({"model_type": "qwen2", "use_sliding_window": true, "sliding_window": 512})"), 512);
  EXPECT_TRUE(notes(R"({"model_type": "llama", "torch_dtype": "bfloat16"})").empty());
  ASSERT_EQ(notes(R"({"model_type": "llama", "torch_dtype": "float32"})").size(), 1u) << "precision is the recipe's";
  ASSERT_EQ(notes(R"({"model_type": "llama", "dtype": "float16"})").size(), 1u) << "the key's newer name";
  ASSERT_EQ(notes(R"({"model_type": "llama", "quantization_config": {"bits": 4}})").size(), 1u);
  EXPECT_TRUE(notes(R"({"model_type": "granite", "logits_scaling": 1.0})").empty());
  ASSERT_EQ(notes(R"({"model_type": "granite", "logits_scaling": 8, "residual_multiplier": 0.22})").size(), 2u);
  EXPECT_NE(refused_config(R"({"model_type": "qwen3_moe", "mlp_only_layers": [0]})").find("expected experts in all"),
            std::string::npos);
  EXPECT_NE(refused_config(R"({"model_type": "phi3", "resid_pdrop": 0.1})").find("\"resid_pdrop\" is not 0"),
            std::string::npos);
  EXPECT_NE(refused_config(R"({"model_type": "starcoder2", "residual_dropout": 0.1})").find("expected one dropout"),
            std::string::npos);
  EXPECT_EQ(refused_config(R"({"model_type": "lama"})").substr(0, 75),
            "config.json: the model_type \"lama\" is not known (nearest: \"llama\"); expecte");
  EXPECT_NE(refused_config(R"({"hidden_size": 3})").find("there is no \"model_type\""), std::string::npos);
  EXPECT_NE(refused_config(R"({"model_type": "llama", "hidden_size": "big"})")
                .find("\"hidden_size\" is \"big\"; expected a whole number"),
            std::string::npos);
  EXPECT_NE(
      refused_config(R"({"model_type": "llama", "hidden_size": 9223372036854775807})").find("expected 0 to 1000000"),
      std::string::npos);
  EXPECT_NE(refused_config(R"({"model_type": "llama", "num_hidden_layers": 0})").find("is 0; expected 1 to"),
            std::string::npos);
  EXPECT_NE(refused_config(R"({"model_type": "llama", "hidden_act": "gelu"})").find("expected \"silu\""),
            std::string::npos);
  EXPECT_NE(
      refused_config(R"({"model_type": "gpt2", "activation_function": "gelu_nw"})").find("(nearest: \"gelu_new\")"),
      std::string::npos);
  EXPECT_NE(refused_config(R"({"model_type": "gpt2", "resid_pdrop": 0.2})").find("expected one dropout"),
            std::string::npos);
  EXPECT_NE(refused_config(R"({"model_type": "resnet", "layer_type": "basic"})").find("expected \"bottleneck\""),
            std::string::npos);
  EXPECT_NE(refused_config(R"({"model_type": "resnet", "depths": []})").find("config.json: "), std::string::npos);
  EXPECT_NE(refused_config(R"({"model_type": "llama")").find("the JSON is damaged"), std::string::npos);
  EXPECT_NE(refused_config("[]").find("expected a JSON object"), std::string::npos);
  EXPECT_NE(refused_config(R"({"model_type": "llama", "num_key_value_heads": 5})").find("does not divide"),
            std::string::npos);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
