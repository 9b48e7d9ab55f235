// Llama and what is made like it: RMSNorm, rotation, a gated MLP; and StarCoder 2.
#include <fmt/format.h>

#include "models/workload/generate/configuration/hugging_face_families.h"

namespace memwall {
namespace {

// What the Llama family shares.
struct LlamaDefaults {
  std::int64_t inner, key_value_heads, vocabulary, longest;
  bool query_key_value_bias;
  std::int64_t layers = 32, width = 4096;
};

void read_llama_like(const HuggingFaceConfig& c, const LlamaDefaults& d, TrainingJob& job) {
  Model& m = job.model;
  read_sizes(c, {d.layers, d.width, 32, d.inner, d.vocabulary, d.longest}, m);
  m.key_value_heads = c.size("num_key_value_heads", d.key_value_heads ? d.key_value_heads : m.heads, kMostHeads);
  m.head_size = c.integer("head_dim", 0, kMostHeads);
  m.normalization = Normalization::rms_norm_in_parts;
  m.activation = c.activation("hidden_act", "silu", true);
  m.positions = Positions::rotary;
  m.joint_query_key_value = false;
  m.bias = false;
  m.query_key_value_bias = d.query_key_value_bias;
  m.tied_embedding = c.flag("tie_word_embeddings", false);
  require_no_attention_dropout(c);
}

std::int64_t window_of(const HuggingFaceConfig& c, std::int64_t otherwise) {
  return c.has("sliding_window") ? c.integer("sliding_window", 0, kMostTokens) : otherwise;
}

void read_llama(const HuggingFaceConfig& c, TrainingJob& job) {
  read_llama_like(c, {11008, 0, 32000, 2048, false}, job);
  if (c.flag("attention_bias", false) != c.flag("mlp_bias", false))
    c.fail("\"attention_bias\" and \"mlp_bias\" differ; expected both true or both false");
  job.model.bias = job.model.query_key_value_bias = c.flag("attention_bias", false);
}

void read_mistral(const HuggingFaceConfig& c, TrainingJob& job) {
  read_llama_like(c, {14336, 8, 32000, 4096 * 32, false}, job);
  job.model.sliding_window = window_of(c, 0);
}

void read_mixtral(const HuggingFaceConfig& c, TrainingJob& job) {
  read_llama_like(c, {14336, 8, 32000, 4096 * 32, false}, job);
  job.model.experts = c.size("num_local_experts", 8, kMostHeads);
  job.model.experts_per_token = c.size("num_experts_per_tok", 2, kMostHeads);
  job.model.sliding_window = window_of(c, 0);
  if (c.flag("output_router_logits", false)) job.notes.push_back("The router's loss of the file is not generated.");
}

// Fused products of queries, keys and values (qkv_proj), and of gate and up (gate_up_proj), without biases.
void read_phi3(const HuggingFaceConfig& c, TrainingJob& job) {
  read_llama_like(c, {8192, 0, 32064, 4096, false, 32, 3072}, job);
  job.model.joint_query_key_value = true;
  for (const char* key : {"resid_pdrop", "embd_pdrop"})
    if (c.share(key, 0) != 0) c.fail(fmt::format("\"{}\" is not 0; dropout in this family is not implemented", key));
  if (c.has("partial_rotary_factor") && c.number("partial_rotary_factor", 1) != 1)
    job.notes.push_back("A part of each head is rotated in the file; all of it is generated as rotated.");
  job.notes.push_back("Gate and up are one product in transformers; they are generated as two.");
  job.model.sliding_window = window_of(c, 0);
}

// Llama with numbers that scale the embedding, both sums of a layer, scores and logits.
void read_granite(const HuggingFaceConfig& c, TrainingJob& job) {
  read_llama(c, job);
  for (const char* key : {"embedding_multiplier", "residual_multiplier", "logits_scaling"})
    if (c.number(key, 1) != 1) {
      job.notes.push_back(
          fmt::format("\"{}\" scales a tensor in transformers; the kernel and its result are not generated.", key));
    }
}

// Layer normalization, an MLP without gate, biases everywhere; queries share heads of keys, which are rotated.
void read_starcoder2(const HuggingFaceConfig& c, TrainingJob& job) {
  Model& m = job.model;
  read_sizes(c, {30, 3072, 24, 12288, 49152, 4096}, m);
  m.key_value_heads = c.size("num_key_value_heads", 2, kMostHeads);
  m.activation = c.activation("hidden_act", "gelu_pytorch_tanh", false);
  m.positions = Positions::rotary;
  m.joint_query_key_value = false;
  m.bias = m.query_key_value_bias = c.flag("use_bias", true);
  m.tied_embedding = c.flag("tie_word_embeddings", true);
  m.dropout = c.one_dropout({{"residual_dropout", 0.0}, {"embedding_dropout", 0.0}, {"attention_dropout", 0.0}});
  job.model.sliding_window = window_of(c, 0);
}

void read_qwen2(const HuggingFaceConfig& c, TrainingJob& job) {
  read_llama_like(c, {22016, 32, 151936, 32768, true}, job);
  if (c.flag("use_sliding_window", false)) job.model.sliding_window = window_of(c, 4096);
}

void read_qwen3(const HuggingFaceConfig& c, TrainingJob& job) {
  read_llama_like(c, {22016, 32, 151936, 32768, false}, job);
  job.model.head_size = c.size("head_dim", 128, kMostHeads);
  job.model.query_key_norm = true;
  require_no_attention_bias(c);
  if (c.flag("use_sliding_window", false)) job.model.sliding_window = window_of(c, 4096);
}

void read_qwen3_moe(const HuggingFaceConfig& c, TrainingJob& job) {
  read_llama_like(c, {768, 4, 151936, 32768, false, 24, 2048}, job);
  Model& m = job.model;
  m.head_size = c.integer("head_dim", 0, kMostHeads);
  m.query_key_norm = true;
  m.inner = c.size("moe_intermediate_size", 768, kMostInner);
  m.experts = c.size("num_experts", 128, kMostHeads);
  m.experts_per_token = c.size("num_experts_per_tok", 8, kMostHeads);
  if (c.integer("decoder_sparse_step", 1, kMostLayers) != 1 || !c.is_empty_list("mlp_only_layers"))
    c.fail("\"decoder_sparse_step\" or \"mlp_only_layers\" leaves layers without experts; expected experts in all");
  require_no_attention_bias(c);
  if (c.flag("use_sliding_window", false)) job.model.sliding_window = window_of(c, 4096);
  if (c.flag("output_router_logits", false)) job.notes.push_back("The router's loss of the file is not generated.");
}

}  // namespace

void add_llama_families(HuggingFaceFamilies& families) {
  families.insert({{"granite", read_granite},
                   {"llama", read_llama},
                   {"mistral", read_mistral},
                   {"mixtral", read_mixtral},
                   {"phi3", read_phi3},
                   {"qwen2", read_qwen2},
                   {"qwen3", read_qwen3},
                   {"qwen3_moe", read_qwen3_moe},
                   {"starcoder2", read_starcoder2}});
}

}  // namespace memwall
