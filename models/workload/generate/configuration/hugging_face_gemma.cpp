// Gemma 1, 2 and 3, and OLMo 2: RMSNorm in fp32, rotation, a gated MLP, written as transformers has them.
#include <fmt/format.h>

#include <algorithm>

#include "models/workload/generate/configuration/hugging_face_families.h"

namespace memwall {
namespace {

// Both names are of GELU's approximation in these classes, whatever the key says.
void require_geglu(const HuggingFaceConfig& c) {
  for (const char* key : {"hidden_activation", "hidden_act"}) {
    const std::string name = c.text(key, "gelu_pytorch_tanh");
    if (name != "gelu_pytorch_tanh" && name != "gelu")
      c.fail(fmt::format("\"{}\" is \"{:.60}\"; expected \"gelu_pytorch_tanh\"", key, name));
  }
}

void read_gemma_like(const HuggingFaceConfig& c, const NetworkSizes& defaults, std::int64_t key_value_heads,
                     TrainingJob& job) {
  Model& m = job.model;
  m.modules = Modules::gemma;
  read_sizes(c, defaults, m);
  m.key_value_heads = c.size("num_key_value_heads", key_value_heads, kMostHeads);
  m.head_size = c.size("head_dim", 256, kMostHeads);
  m.normalization = Normalization::rms_norm_zero_centered;
  require_geglu(c);
  m.activation = Activation::geglu;
  m.positions = Positions::rotary;
  m.joint_query_key_value = m.bias = m.query_key_value_bias = false;
  m.tied_embedding = c.flag("tie_word_embeddings", true);
  m.scaled_embedding = true;
  require_no_attention_bias(c);
  require_no_attention_dropout(c);
  if (c.flag("use_bidirectional_attention", false))
    c.fail("\"use_bidirectional_attention\" is true; expected false: attention is generated as causal");
}

// "layer_types", or where it is absent every n-th layer without a window.
void read_windows(const HuggingFaceConfig& c, std::int64_t every, Model& m) {
  m.sliding_window = c.integer("sliding_window", c.holds("sliding_window") ? 0 : 4096, kMostTokens);
  const std::vector<std::string> types = c.texts("layer_types");
  if (!types.empty()) {
    if (static_cast<std::int64_t>(types.size()) != m.layers)
      c.fail(
          fmt::format("\"layer_types\" has {} elements; expected one for each of {} layers", types.size(), m.layers));
    for (const std::string& type : types)
      if (type != "sliding_attention" && type != "full_attention")
        c.fail(fmt::format("\"layer_types\" holds \"{:.60}\"; expected sliding_attention or full_attention", type));
    const auto first = std::find(types.begin(), types.end(), "full_attention");
    every = first == types.end() ? 0 : first - types.begin() + 1;
    for (std::size_t i = 0; i < types.size(); ++i)
      if (every != 0 && (types[i] == "full_attention") != ((static_cast<std::int64_t>(i) + 1) % every == 0))
        c.fail(
            fmt::format("\"layer_types\" is of no pattern; expected full_attention in each {}th layer and "
                        "sliding_attention in the others",
                        every));
  }
  m.full_attention_every = every;
}

void read_gemma(const HuggingFaceConfig& c, TrainingJob& job) {
  read_gemma_like(c, {28, 3072, 16, 24576, 256000, 8192}, 16, job);
}

void read_gemma2(const HuggingFaceConfig& c, TrainingJob& job) {
  read_gemma_like(c, {26, 2304, 8, 9216, 256000, 8192}, 4, job);
  Model& m = job.model;
  m.layer_order = LayerOrder::sandwich_norm;
  const auto caps = [&](const char* key, double otherwise) {  // null: none
    return c.holds(key) ? c.number(key, 0) != 0 : otherwise != 0;
  };
  m.attention_softcapping = caps("attn_logit_softcapping", 50);
  m.logit_softcapping = caps("final_logit_softcapping", 30);
  read_windows(c, 2, m);
}

void read_gemma3(const HuggingFaceConfig& c, TrainingJob& job) {
  read_gemma_like(c, {26, 2304, 8, 9216, 262208, 131072}, 4, job);
  Model& m = job.model;
  m.layer_order = LayerOrder::sandwich_norm;
  m.query_key_norm = true;
  m.local_rotary = true;
  m.attention_softcapping = c.number("attn_logit_softcapping", 0) != 0;
  m.logit_softcapping = c.number("final_logit_softcapping", 0) != 0;
  read_windows(c, c.size("sliding_window_pattern", 6, kMostLayers), m);
}

// The text part of a model of images and words.
void read_gemma3_multimodal(const HuggingFaceConfig& c, TrainingJob& job) {
  read_gemma3(c.within("text_config"), job);
  job.notes.push_back(
      "The vision tower and the projector of the file are not generated: what is trained is its text model.");
}

void read_olmo2(const HuggingFaceConfig& c, TrainingJob& job) {
  Model& m = job.model;
  m.modules = Modules::olmo2;
  m.layer_order = LayerOrder::reordered_norm;
  read_sizes(c, {32, 4096, 32, 11008, 50304, 2048}, m);
  m.key_value_heads = c.size("num_key_value_heads", m.heads, kMostHeads);
  m.head_size = c.integer("head_dim", 0, kMostHeads);
  m.normalization = Normalization::rms_norm_in_fp32;
  m.activation = c.activation("hidden_act", "silu", true);
  m.positions = Positions::rotary;
  m.joint_query_key_value = m.bias = m.query_key_value_bias = false;
  m.query_key_norm = m.query_key_norm_over_heads = true;
  m.tied_embedding = c.flag("tie_word_embeddings", false);
  require_no_attention_bias(c);
  require_no_attention_dropout(c);
}

}  // namespace

void add_gemma_families(HuggingFaceFamilies& families) {
  families.insert({{"gemma", read_gemma},
                   {"gemma2", read_gemma2},
                   {"gemma3", read_gemma3_multimodal},
                   {"gemma3_text", read_gemma3},
                   {"olmo2", read_olmo2}});
}

}  // namespace memwall
