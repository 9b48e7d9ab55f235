#include "models/workload/generate/configuration/hugging_face_families.h"

namespace memwall {

void read_sizes(const HuggingFaceConfig& c, const NetworkSizes& defaults, Model& m) {
  m.layers = c.size("num_hidden_layers", defaults.layers, kMostLayers);
  m.width = c.size("hidden_size", defaults.width, kMostWidth);
  m.heads = c.size("num_attention_heads", defaults.heads, kMostHeads);
  m.inner = c.size("intermediate_size", defaults.inner, kMostInner);
  m.vocabulary = c.size("vocab_size", defaults.vocabulary, kMostWords);
  m.longest = c.size("max_position_embeddings", defaults.longest, kMostTokens);
}

void require_no_attention_bias(const HuggingFaceConfig& c) {
  if (c.flag("attention_bias", false))
    c.fail("\"attention_bias\" is true; biases of attention alone are not implemented");
}

void require_no_attention_dropout(const HuggingFaceConfig& c) {
  if (c.share("attention_dropout", 0) != 0)
    c.fail("\"attention_dropout\" is not 0; dropout in attention alone is not implemented");
}

}  // namespace memwall
