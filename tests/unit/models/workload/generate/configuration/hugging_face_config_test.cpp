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
  const auto window = [](const char* json) { return parse_hugging_face_config(json, "c").model.sliding_window; };
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

// The published config.json of each family that is written as transformers has it, keys that matter.
TEST(HuggingFaceConfig, FamiliesOfTransformersGiveThePublishedCounts) {
  const auto count = [](const std::string& json) {
    return parameter_count(parse_hugging_face_config(json, "config.json").model);
  };
  EXPECT_EQ(count(R"({"model_type": "gemma", "hidden_act": "gelu", "hidden_activation": null, "hidden_size": 2048,
                      "intermediate_size": 16384, "num_hidden_layers": 18, "num_attention_heads": 8,
                      "num_key_value_heads": 1, "head_dim": 256})"),
            2506172416);
  EXPECT_EQ(count(R"({"model_type": "gemma2", "hidden_size": 3584, "intermediate_size": 14336, "num_hidden_layers": 42,
                      "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 256})"),
            9241705984);
  EXPECT_EQ(
      count(R"({"model_type": "gemma3_text", "hidden_size": 1152, "intermediate_size": 6912, "num_attention_heads": 4,
                      "num_key_value_heads": 1, "sliding_window": 512, "vocab_size": 262144})"),
      999885952);
  EXPECT_EQ(count(R"({"model_type": "gemma3", "text_config": {"hidden_size": 3840, "intermediate_size": 15360,
                      "num_hidden_layers": 48, "num_attention_heads": 16, "num_key_value_heads": 8}})"),
            11766034176);
  EXPECT_EQ(count(R"({"model_type": "olmo2", "vocab_size": 100352, "max_position_embeddings": 4096})"), 7298617344);
  EXPECT_EQ(count(R"({"model_type": "gpt_neox"})"), 20554567680);
  EXPECT_EQ(count(R"({"model_type": "opt", "hidden_size": 4096, "ffn_dim": 16384, "num_hidden_layers": 32,
                      "num_attention_heads": 32, "word_embed_proj_dim": 4096})"),
            6658473984);
  EXPECT_EQ(count(R"({"model_type": "phi", "hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 32,
                      "partial_rotary_factor": 0.4, "resid_pdrop": 0.1})"),
            2779683840);
  EXPECT_EQ(count(R"({"model_type": "bloom", "n_embed": 4096, "num_hidden_layers": 30, "num_attention_heads": 32})"),
            7069016064);
  EXPECT_EQ(count(R"({"model_type": "falcon", "num_kv_heads": 71})"), 6921720704) << "multi_query: one head";
  EXPECT_EQ(count(R"({"model_type": "falcon", "hidden_size": 8192, "num_hidden_layers": 60, "num_attention_heads": 128,
                      "num_kv_heads": 8, "new_decoder_architecture": true})"),
            41303293952);
  EXPECT_EQ(count(R"({"model_type": "roberta", "max_position_embeddings": 514, "type_vocab_size": 1})"), 124697433);
  EXPECT_EQ(count(R"({"model_type": "xlm-roberta", "max_position_embeddings": 514, "type_vocab_size": 1,
                      "vocab_size": 250002})"),
            278295186);
  EXPECT_EQ(count(R"({"model_type": "distilbert"})"), 66985530);
}

TEST(HuggingFaceConfig, OfFamiliesOfTransformersStructureIsFollowed) {
  const auto model = [](const char* json) { return parse_hugging_face_config(json, "c").model; };
  const Model gemma2 = model(R"({"model_type": "gemma2"})");
  EXPECT_EQ(gemma2.layer_order, LayerOrder::sandwich_norm);
  EXPECT_TRUE(gemma2.attention_softcapping && gemma2.logit_softcapping && gemma2.scaled_embedding);
  EXPECT_EQ(gemma2.sliding_window, 4096);
  EXPECT_TRUE(has_window(gemma2, 0) && !has_window(gemma2, 1)) << "every other layer attends to all";
  EXPECT_FALSE(model(R"({"model_type": "gemma2", "attn_logit_softcapping": null})").attention_softcapping);
  const Model gemma3 = model(R"({"model_type": "gemma3_text", "num_hidden_layers": 12})");
  EXPECT_TRUE(has_window(gemma3, 4) && !has_window(gemma3, 5) && !has_window(gemma3, 11));
  EXPECT_TRUE(gemma3.local_rotary && gemma3.query_key_norm && !gemma3.logit_softcapping);
  EXPECT_EQ(model(R"({"model_type": "gemma3_text", "num_hidden_layers": 3, "sliding_window": null,
                      "layer_types": ["full_attention", "full_attention", "full_attention"]})")
                .sliding_window,
            0);
  EXPECT_EQ(model(R"({"model_type": "gpt_neox", "use_parallel_residual": false})").layer_order, LayerOrder::pre_norm);
  EXPECT_EQ(model(R"({"model_type": "gpt_neox", "rotary_pct": 1})").rotary_size, 0) << "all of each head";
  EXPECT_EQ(model(R"({"model_type": "gpt_neox", "hidden_act": "gelu_fast"})").activation,
            Activation::gelu_tanh_in_parts)
      << "the published configuration of 20B";
  EXPECT_EQ(model(R"({"model_type": "gpt_neox"})").rotary_size, 24);
  EXPECT_EQ(model(R"({"model_type": "phi", "rope_parameters": {"partial_rotary_factor": 0.25}})").rotary_size, 16);
  EXPECT_EQ(model(R"({"model_type": "falcon"})").layer_order, LayerOrder::parallel_shared_norm);
  EXPECT_EQ(model(R"({"model_type": "roberta", "max_position_embeddings": 514})").longest, 512);
  EXPECT_EQ(parse_hugging_face_config(R"({"model_type": "bloom"})", "c").recipe.attention, Attention::plain);
  EXPECT_EQ(parse_hugging_face_config(R"({"model_type": "gemma3", "text_config": {}})", "c").notes.size(), 1u)
      << "what is left out is said";
}

TEST(HuggingFaceConfig, OfFamiliesOfTransformersWhatIsNotFollowedIsRefused) {
  const std::pair<const char*, const char*> refused[] = {
      {R"({"model_type": "gemma", "hidden_act": "relu"})",
       "\"hidden_act\" is \"relu\"; expected \"gelu_pytorch_tanh\""},
      {R"({"model_type": "gemma", "attention_bias": true})", "\"attention_bias\" is true"},
      {R"({"model_type": "gemma3_text", "use_bidirectional_attention": true})", "expected false"},
      {R"({"model_type": "gemma2", "num_hidden_layers": 2, "layer_types": ["full_attention"]})",
       "\"layer_types\" has 1 elements; expected one for each of 2 layers"},
      {R"({"model_type": "gemma2", "num_hidden_layers": 3,
           "layer_types": ["sliding_attention", "full_attention", "full_attention"]})",
       "\"layer_types\" is of no pattern"},
      {R"({"model_type": "gemma2", "num_hidden_layers": 1, "layer_types": ["chunked_attention"]})",
       "\"layer_types\" holds \"chunked_attention\""},
      {R"({"model_type": "gemma3"})", "there is no object \"text_config\""},
      {R"({"model_type": "olmo2", "hidden_act": "gelu"})", "expected \"silu\""},
      {R"({"model_type": "gpt_neox", "attention_bias": false})", "\"attention_bias\" is false"},
      {R"({"model_type": "gpt_neox", "rotary_pct": 0})", "\"partial_rotary_factor\" is 0"},
      {R"({"model_type": "gpt_neox", "hidden_dropout": 0.1})", "expected one dropout"},
      {R"({"model_type": "opt", "do_layer_norm_before": false})", "\"do_layer_norm_before\" is false"},
      {R"({"model_type": "opt", "word_embed_proj_dim": 512})", "projected embeddings are not implemented"},
      {R"({"model_type": "phi", "qk_layernorm": true})", "\"qk_layernorm\" is true"},
      {R"({"model_type": "bloom", "apply_residual_connection_post_layernorm": true})", "expected false"},
      {R"({"model_type": "falcon", "alibi": true})", "\"alibi\" is true"},
      {R"({"model_type": "falcon", "bias": true})", "\"bias\" is true"},
      {R"({"model_type": "falcon", "multi_query": false})", "\"multi_query\" is false"},
      {R"({"model_type": "falcon", "parallel_attn": false})", "\"parallel_attn\" is false"},
      {R"({"model_type": "roberta", "is_decoder": true})", "\"is_decoder\" is true"},
      {R"({"model_type": "roberta", "max_position_embeddings": 2})", "expected more than"},
      {R"({"model_type": "distilbert", "sinusoidal_pos_embds": true})", "expected false"},
      {R"({"model_type": "distilbert", "activation": "gelu_new"})", "expected gelu"}};
  for (const auto& [json, sentence] : refused)
    EXPECT_NE(refused_config(json).find(sentence), std::string::npos) << json << "\n" << refused_config(json);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
