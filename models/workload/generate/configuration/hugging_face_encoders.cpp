// BERT and what is made like it.
#include <fmt/format.h>

#include "models/workload/generate/configuration/hugging_face_families.h"

namespace memwall {
namespace {

void read_encoder_layers(const HuggingFaceConfig& c, TrainingJob& job) {
  Model& m = job.model;
  m.layers = c.size("num_hidden_layers", 12, kMostLayers);
  m.width = c.size("hidden_size", 768, kMostWidth);
  m.heads = c.size("num_attention_heads", 12, kMostHeads);
  m.inner = c.size("intermediate_size", 3072, kMostInner);
  m.activation = c.activation("hidden_act", "gelu", false);
  m.joint_query_key_value = false;
  if (const std::string kind = c.text("position_embedding_type", "absolute"); kind != "absolute")
    c.fail(fmt::format("\"position_embedding_type\" is \"{:.60}\"; expected \"absolute\"", kind));
}

void read_bert(const HuggingFaceConfig& c, TrainingJob& job) {
  Model& m = job.model;
  m.architecture = Architecture::encoder;
  read_encoder_layers(c, job);
  m.vocabulary = c.size("vocab_size", 30522, kMostWords);
  m.longest = c.size("max_position_embeddings", 512, kMostTokens);
  m.dropout = c.one_dropout({{"hidden_dropout_prob", 0.1}, {"attention_probs_dropout_prob", 0.1}});
  m.tied_embedding = c.flag("tie_word_embeddings", true);
  if (c.integer("type_vocab_size", 2, 100) != 2)
    c.fail("\"type_vocab_size\" is not 2; other numbers are not implemented");
}

// gelu_new and gelu_fast are written operator by operator in transformers; in encoders they are not implemented so.
Activation of_family(const HuggingFaceConfig& c, const char* key) {
  const std::string name = c.text(key, "gelu");
  if (name == "gelu_new" || name == "gelu_fast")
    c.fail(fmt::format("\"{}\" is \"{}\"; expected gelu, gelu_pytorch_tanh or relu", key, name));
  return c.activation(key, "gelu", false);
}

void read_roberta_like(const HuggingFaceConfig& c, std::int64_t vocabulary, TrainingJob& job) {
  Model& m = job.model;
  m.architecture = Architecture::encoder;
  m.modules = Modules::roberta;
  read_encoder_layers(c, job);
  m.activation = of_family(c, "hidden_act");
  m.vocabulary = c.size("vocab_size", vocabulary, kMostWords);
  m.token_types = c.size("type_vocab_size", 2, 1000);
  m.position_offset = c.integer("pad_token_id", 1, 1000) + 1;  // positions are counted behind that of padding
  const std::int64_t rows = c.size("max_position_embeddings", 512, kMostTokens);
  if (rows <= m.position_offset)
    c.fail(fmt::format("\"max_position_embeddings\" is {}; expected more than \"pad_token_id\" + 1", rows));
  m.longest = rows - m.position_offset;
  m.dropout = c.one_dropout({{"hidden_dropout_prob", 0.1}, {"attention_probs_dropout_prob", 0.1}});
  m.tied_embedding = c.flag("tie_word_embeddings", true);
  for (const char* key : {"is_decoder", "add_cross_attention"})
    if (c.flag(key, false)) c.fail(fmt::format("\"{}\" is true; expected false: an encoder of masked words", key));
}

void read_roberta(const HuggingFaceConfig& c, TrainingJob& job) { read_roberta_like(c, 50265, job); }
void read_xlm_roberta(const HuggingFaceConfig& c, TrainingJob& job) { read_roberta_like(c, 30522, job); }

void read_distilbert(const HuggingFaceConfig& c, TrainingJob& job) {
  Model& m = job.model;
  m.architecture = Architecture::encoder;
  m.modules = Modules::distilbert;
  m.layers = c.size("n_layers", c.integer("num_hidden_layers", 6, kMostLayers), kMostLayers);
  m.width = c.size("dim", c.integer("hidden_size", 768, kMostWidth), kMostWidth);
  m.heads = c.size("n_heads", c.integer("num_attention_heads", 12, kMostHeads), kMostHeads);
  m.inner = c.size("hidden_dim", 3072, kMostInner);
  m.activation = of_family(c, "activation");
  m.joint_query_key_value = false;
  m.vocabulary = c.size("vocab_size", 30522, kMostWords);
  m.longest = c.size("max_position_embeddings", 512, kMostTokens);
  m.token_types = 0;
  m.dropout = c.one_dropout({{"dropout", 0.1}, {"attention_dropout", 0.1}});
  m.tied_embedding = c.flag("tie_word_embeddings", true);
  if (c.flag("sinusoidal_pos_embds", false))
    c.fail("\"sinusoidal_pos_embds\" is true; expected false: positions are generated as trained");
}

}  // namespace

void add_encoder_families(HuggingFaceFamilies& families) {
  families.insert({{"bert", read_bert},
                   {"distilbert", read_distilbert},
                   {"roberta", read_roberta},
                   {"xlm-roberta", read_xlm_roberta}});
}

}  // namespace memwall
