// GPT-2 and what is made like it: layer normalization, an MLP without a gate.
#include <fmt/format.h>

#include "models/workload/generate/configuration/hugging_face_families.h"

namespace memwall {
namespace {

void read_gpt2(const HuggingFaceConfig& c, TrainingJob& job) {
  Model& m = job.model;
  m.layers = c.size("n_layer", 12, kMostLayers);
  m.width = c.size("n_embd", 768, kMostWidth);
  m.heads = c.size("n_head", 12, kMostHeads);
  m.inner = c.integer("n_inner", 0, kMostInner);
  m.vocabulary = c.size("vocab_size", 50257, kMostWords);
  m.longest = c.size("n_positions", 1024, kMostTokens);
  m.activation = c.activation("activation_function", "gelu_new", false);
  m.dropout = c.one_dropout({{"resid_pdrop", 0.1}, {"embd_pdrop", 0.1}, {"attn_pdrop", 0.1}});
  m.tied_embedding = c.flag("tie_word_embeddings", true);
  if (c.flag("scale_attn_by_inverse_layer_idx", false) || c.flag("reorder_and_upcast_attn", false))
    job.notes.push_back("Attention is scaled or cast per layer in the file; it is generated without.");
}

// transformers writes gelu_new and gelu_fast operator by operator.
Activation ungated(const HuggingFaceConfig& c, const char* key, const char* otherwise, TrainingJob& job) {
  const std::string name = c.text(key, otherwise);
  if (name == "gelu_fast")
    job.notes.push_back(
        "\"gelu_fast\" is generated as gelu_new, which has an operator less and keeps four results for backward where "
        "gelu_fast keeps seven: activations take more than said.");
  if (name == "gelu_new" || name == "gelu_fast") return Activation::gelu_tanh_in_parts;
  return c.activation(key, otherwise, false);
}

// The part of each head that is rotated; 0: all.
std::int64_t rotary_size_of(const HuggingFaceConfig& c, const Model& m, double otherwise) {
  const double part = c.number_within("rope_parameters", "partial_rotary_factor", otherwise);
  if (!(part > 0 && part <= 1))
    c.fail(fmt::format("\"partial_rotary_factor\" is {}; expected more than 0, at most 1", part));
  const std::int64_t head = m.heads > 0 ? m.width / m.heads : 0;
  const auto size = static_cast<std::int64_t>(static_cast<double>(head) * part);
  if (size == 0) c.fail(fmt::format("\"partial_rotary_factor\" {} leaves nothing of heads of {}", part, head));
  return size == head ? 0 : size;
}

void read_gpt_neox(const HuggingFaceConfig& c, TrainingJob& job) {
  Model& m = job.model;
  m.modules = Modules::gpt_neox;
  m.layer_order = c.flag("use_parallel_residual", true) ? LayerOrder::parallel : LayerOrder::pre_norm;
  read_sizes(c, {44, 6144, 64, 24576, 50432, 2048}, m);
  m.activation = ungated(c, "hidden_act", "gelu", job);
  m.positions = Positions::rotary;
  m.rotary_size = rotary_size_of(c, m, c.number("rotary_pct", 0.25));
  m.dropout = c.one_dropout({{"hidden_dropout", 0.0}, {"attention_dropout", 0.0}});
  m.tied_embedding = c.flag("tie_word_embeddings", false);
  if (!c.flag("attention_bias", true)) c.fail("\"attention_bias\" is false; expected true: others are not implemented");
}

void read_opt(const HuggingFaceConfig& c, TrainingJob& job) {
  Model& m = job.model;
  m.modules = Modules::opt;
  m.layers = c.size("num_hidden_layers", 12, kMostLayers);
  m.width = c.size("hidden_size", 768, kMostWidth);
  m.heads = c.size("num_attention_heads", 12, kMostHeads);
  m.inner = c.size("ffn_dim", 3072, kMostInner);
  m.vocabulary = c.size("vocab_size", 50272, kMostWords);
  m.longest = c.size("max_position_embeddings", 2048, kMostTokens);
  m.position_offset = 2;
  m.activation = ungated(c, "activation_function", "relu", job);
  m.joint_query_key_value = false;
  m.bias = m.query_key_value_bias = c.flag("enable_bias", true);
  m.tied_embedding = c.flag("tie_word_embeddings", true);
  m.dropout = c.share("dropout", 0.1);
  m.residual_dropout_only = true;
  if (!c.flag("do_layer_norm_before", true))
    c.fail("\"do_layer_norm_before\" is false; normalization behind each part (OPT 350M) is not implemented");
  if (c.size("word_embed_proj_dim", m.width, kMostWidth) != m.width)
    c.fail(fmt::format("\"word_embed_proj_dim\" is not \"hidden_size\" {}; projected embeddings are not implemented",
                       m.width));
  if (c.flag("_remove_final_layer_norm", false)) c.fail("\"_remove_final_layer_norm\" is true; expected false");
  if (!c.flag("layer_norm_elementwise_affine", true))
    c.fail("\"layer_norm_elementwise_affine\" is false; expected true");
  if (c.share("layerdrop", 0) != 0)
    job.notes.push_back("\"layerdrop\" skips layers at random; all of them are generated.");
  if (c.share("attention_dropout", 0) != 0)
    job.notes.push_back(
        "\"attention_dropout\" is not 0; dropout of the scores is generated inside fused attention alone.");
}

void read_phi(const HuggingFaceConfig& c, TrainingJob& job) {
  Model& m = job.model;
  m.modules = Modules::phi;
  m.layer_order = LayerOrder::parallel_shared_norm;
  read_sizes(c, {24, 2048, 32, 8192, 51200, 2048}, m);
  m.key_value_heads = c.size("num_key_value_heads", m.heads, kMostHeads);
  m.activation = ungated(c, "hidden_act", "gelu_new", job);
  m.positions = Positions::rotary;
  m.rotary_size = rotary_size_of(c, m, 0.5);
  m.joint_query_key_value = false;
  m.output_bias = true;
  m.tied_embedding = c.flag("tie_word_embeddings", false);
  m.dropout = c.share("resid_pdrop", 0);
  m.residual_dropout_only = c.share("embd_pdrop", 0) == 0 && c.share("attention_dropout", 0) == 0;
  if (!m.residual_dropout_only) c.one_dropout({{"resid_pdrop", 0.0}, {"embd_pdrop", 0.0}, {"attention_dropout", 0.0}});
  if (c.flag("qk_layernorm", false)) c.fail("\"qk_layernorm\" is true; expected false: it is not implemented here");
}

void read_bloom(const HuggingFaceConfig& c, TrainingJob& job) {
  Model& m = job.model;
  m.modules = Modules::bloom;
  m.layers = c.size("n_layer", c.integer("num_hidden_layers", 2, kMostLayers), kMostLayers);
  m.width = c.size("hidden_size", c.integer("n_embed", 64, kMostWidth), kMostWidth);
  m.heads = c.size("n_head", c.integer("num_attention_heads", 8, kMostHeads), kMostHeads);
  m.vocabulary = c.size("vocab_size", 250880, kMostWords);
  m.longest = c.size("seq_length", 2048, kMostTokens);
  m.activation = Activation::gelu_tanh_recomputed;
  m.positions = Positions::alibi;
  m.normalized_embedding = true;
  m.tied_embedding = c.flag("tie_word_embeddings", true);
  m.dropout = c.one_dropout({{"hidden_dropout", 0.0}, {"attention_dropout", 0.0}});
  job.recipe.attention = Attention::plain;  // its class has no other
  if (c.flag("apply_residual_connection_post_layernorm", false))
    c.fail("\"apply_residual_connection_post_layernorm\" is true; expected false: it is not implemented here");
  if (c.flag("slow_but_exact", false) && c.integer("pretraining_tp", 1, kMostHeads) > 1)
    c.fail("\"slow_but_exact\" is true; expected false: products in slices are not implemented");
}

void read_falcon(const HuggingFaceConfig& c, TrainingJob& job) {
  Model& m = job.model;
  m.modules = Modules::falcon;
  m.layers = c.size("num_hidden_layers", c.integer("n_layer", 32, kMostLayers), kMostLayers);
  m.width = c.size("hidden_size", c.integer("n_embed", 4544, kMostWidth), kMostWidth);
  m.heads = c.size("num_attention_heads", c.integer("n_head", 71, kMostHeads), kMostHeads);
  m.inner = c.integer("ffn_hidden_size", 0, kMostInner);
  m.vocabulary = c.size("vocab_size", 65024, kMostWords);
  m.longest = c.size("max_position_embeddings", 2048, kMostTokens);
  m.activation = ungated(c, "activation", "gelu", job);
  m.positions = Positions::rotary;
  m.bias = m.query_key_value_bias = false;
  m.tied_embedding = c.flag("tie_word_embeddings", true);
  m.dropout = c.one_dropout({{"hidden_dropout", 0.0}, {"attention_dropout", 0.0}});
  m.residual_dropout_only = true;
  const bool groups = c.flag("new_decoder_architecture", false);
  m.key_value_heads = groups ? c.size("num_kv_heads", c.integer("n_head_kv", m.heads, kMostHeads), kMostHeads) : 1;
  const std::int64_t norms = c.size("num_ln_in_parallel_attn", groups ? 2 : 1, 2);
  m.layer_order = norms == 2 ? LayerOrder::parallel : LayerOrder::parallel_shared_norm;
  if (!groups && norms == 2)
    c.fail("\"num_ln_in_parallel_attn\" is 2 without \"new_decoder_architecture\"; expected 1");
  if (!groups && !c.flag("multi_query", true))
    c.fail("\"multi_query\" is false; expected true, or \"new_decoder_architecture\": others are not implemented");
  if (!groups && !c.flag("parallel_attn", true))
    c.fail("\"parallel_attn\" is false; expected true: others are not implemented");
  if (c.flag("alibi", false)) c.fail("\"alibi\" is true; expected false: of Falcon it is not implemented");
  if (c.flag("bias", false)) c.fail("\"bias\" is true; expected false: of Falcon it is not implemented");
}

}  // namespace

void add_gpt_families(HuggingFaceFamilies& families) {
  families.insert({{"bloom", read_bloom},
                   {"falcon", read_falcon},
                   {"gpt2", read_gpt2},
                   {"gpt_neox", read_gpt_neox},
                   {"opt", read_opt},
                   {"phi", read_phi}});
}

}  // namespace memwall
