// Reads the config.json that comes with a model of Hugging Face's transformers. Keys and defaults are those of the
// configuration class of each model_type (transformers 4.4x); keys that do not change what a training step does are
// passed over.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <simdjson.h>

#include <map>
#include <optional>

#include "models/workload/generate/configuration/workload_file.h"
#include "models/workload/generate/configuration/workload_limits.h"
#include "sim/error.h"

namespace memwall {
namespace {

namespace dom = simdjson::dom;

// The members of the file, by key, with the defaults that the caller gives.
class Config {
 public:
  Config(std::string_view json, std::string file) : file_(std::move(file)), text_(json) {
    dom::element element;
    if (const auto error = parser_.parse(text_).get(element))
      fail(fmt::format("the JSON is damaged: {}", simdjson::error_message(error)));
    if (element.get_object().get(members_)) fail("expected a JSON object: the config.json of a model");
  }

  [[noreturn]] void fail(const std::string& sentence) const {
    throw InputError(fmt::format("{}: {}.", file_, sentence));
  }

  // Absent and null are the same, as in Python's configuration classes.
  bool has(std::string_view key) const { return find(key).has_value(); }

  std::int64_t integer(std::string_view key, std::int64_t otherwise, std::int64_t high) const {
    const auto value = find(key);
    if (!value) return otherwise;
    std::int64_t number = 0;
    if (value->get_int64().get(number)) fail(fmt::format("\"{}\" is {}; expected a whole number", key, shown(*value)));
    if (number < 0 || number > high) fail(fmt::format("\"{}\" is {}; expected 0 to {}", key, number, high));
    return number;
  }
  // At least 1.
  std::int64_t size(std::string_view key, std::int64_t otherwise, std::int64_t high) const {
    const std::int64_t number = integer(key, otherwise, high);
    if (number == 0) fail(fmt::format("\"{}\" is 0; expected 1 to {}", key, high));
    return number;
  }
  double number(std::string_view key, double otherwise) const {
    const auto value = find(key);
    double found = otherwise;
    if (value && value->get_double().get(found))
      fail(fmt::format("\"{}\" is {}; expected a number", key, shown(*value)));
    return found;
  }
  double share(std::string_view key, double otherwise) const {
    const auto value = find(key);
    if (!value) return otherwise;
    double number = 0;
    if (value->get_double().get(number) || !(number >= 0 && number < 1))
      fail(fmt::format("\"{}\" is {}; expected at least 0 and less than 1", key, shown(*value)));
    return number;
  }
  bool flag(std::string_view key, bool otherwise) const {
    const auto value = find(key);
    if (!value) return otherwise;
    bool truth = false;
    if (value->get_bool().get(truth)) fail(fmt::format("\"{}\" is {}; expected true or false", key, shown(*value)));
    return truth;
  }
  std::string text(std::string_view key, std::string_view otherwise) const {
    const auto value = find(key);
    if (!value) return std::string(otherwise);
    std::string_view found;
    if (value->get_string().get(found)) fail(fmt::format("\"{}\" is {}; expected a text", key, shown(*value)));
    return std::string(found);
  }
  std::vector<std::int64_t> list(std::string_view key, std::vector<std::int64_t> otherwise) const {
    const auto value = find(key);
    if (!value) return otherwise;
    dom::array found;
    if (value->get_array().get(found) || found.size() > 1000)
      fail(fmt::format("\"{}\" is {}; expected a list of at most 1000 whole numbers", key, shown(*value)));
    std::vector<std::int64_t> numbers;
    for (const dom::element element : found) {
      std::int64_t number = 0;
      if (element.get_int64().get(number) || number < 1 || number > 100000)
        fail(fmt::format("\"{}\" holds {}; expected whole numbers from 1 to 100000", key, shown(element)));
      numbers.push_back(number);
    }
    return numbers;
  }
  // Absent, or a list of nothing.
  bool is_empty_list(std::string_view key) const {
    const auto value = find(key);
    dom::array found;
    return !value || (!value->get_array().get(found) && found.size() == 0);
  }
  // Members of the object under `key`; 0 where it is absent.
  std::size_t members(std::string_view key) const {
    const auto value = find(key);
    dom::object object;
    if (!value || value->get_object().get(object)) return 0;
    return object.size();
  }

 private:
  std::optional<dom::element> find(std::string_view key) const {
    dom::element value;
    if (members_.at_key(key).get(value) || value.is_null()) return std::nullopt;
    return value;
  }
  static std::string shown(const dom::element& value) {
    const std::string text = simdjson::minify(value);
    return text.size() <= 60 ? text : text.substr(0, 60) + "...";
  }

  std::string file_;
  simdjson::padded_string text_;
  dom::parser parser_;
  dom::object members_;
};

constexpr std::int64_t kMostLayers = 10000, kMostHeads = 10000, kMostWidth = 1000000, kMostInner = 10000000,
                       kMostWords = 100000000, kMostTokens = 1000000000;

Activation activation(const Config& config, std::string_view key, std::string_view otherwise, bool gated) {
  static const std::map<std::string, Activation, std::less<>> known{{"gelu", Activation::gelu},
                                                                    {"gelu_new", Activation::gelu_tanh},
                                                                    {"gelu_pytorch_tanh", Activation::gelu_tanh},
                                                                    {"gelu_fast", Activation::gelu_tanh},
                                                                    {"relu", Activation::relu}};
  const std::string name = config.text(key, otherwise);
  if (gated) {
    if (name == "silu" || name == "swish") return Activation::swiglu;
    config.fail(
        fmt::format("\"{}\" is \"{:.60}\"; expected \"silu\": no other gated activation is known here", key, name));
  }
  const auto found = known.find(name);
  if (found != known.end()) return found->second;
  std::vector<std::string> names;
  for (const auto& [n, a] : known) names.push_back(n);
  const std::string near = name.size() > 60 ? "" : nearest_name(name, names);
  config.fail(fmt::format("\"{}\" is \"{:.60}\"{}; expected one of {}", key, name,
                          near.empty() ? "" : fmt::format(" (nearest: \"{}\")", near), fmt::join(names, ", ")));
}

// The generators know one dropout: all must be equal, or all but one kind 0 is refused.
double one_dropout(const Config& config, const std::vector<std::pair<const char*, double>>& keys) {
  const double first = config.share(keys.front().first, keys.front().second);
  for (const auto& [key, otherwise] : keys)
    if (config.share(key, otherwise) != first)
      config.fail(fmt::format("\"{}\" is {} and \"{}\" is {}; expected one dropout for all", keys.front().first, first,
                              key, config.share(key, otherwise)));
  return first;
}

void read_gpt2(const Config& c, TrainingJob& job) {
  Model& m = job.model;
  m.layers = c.size("n_layer", 12, kMostLayers);
  m.width = c.size("n_embd", 768, kMostWidth);
  m.heads = c.size("n_head", 12, kMostHeads);
  m.inner = c.integer("n_inner", 0, kMostInner);
  m.vocabulary = c.size("vocab_size", 50257, kMostWords);
  m.longest = c.size("n_positions", 1024, kMostTokens);
  m.activation = activation(c, "activation_function", "gelu_new", false);
  m.dropout = one_dropout(c, {{"resid_pdrop", 0.1}, {"embd_pdrop", 0.1}, {"attn_pdrop", 0.1}});
  m.tied_embedding = c.flag("tie_word_embeddings", true);
  if (c.flag("scale_attn_by_inverse_layer_idx", false) || c.flag("reorder_and_upcast_attn", false))
    job.notes.push_back("Attention is scaled or cast per layer in the file; it is generated without.");
}

// What the Llama family shares.
struct LlamaDefaults {
  std::int64_t inner, key_value_heads, vocabulary, longest;
  bool query_key_value_bias;
  std::int64_t layers = 32, width = 4096;
};

void read_llama_like(const Config& c, const LlamaDefaults& d, TrainingJob& job) {
  Model& m = job.model;
  m.layers = c.size("num_hidden_layers", d.layers, kMostLayers);
  m.width = c.size("hidden_size", d.width, kMostWidth);
  m.heads = c.size("num_attention_heads", 32, kMostHeads);
  m.key_value_heads = c.size("num_key_value_heads", d.key_value_heads ? d.key_value_heads : m.heads, kMostHeads);
  m.head_size = c.integer("head_dim", 0, kMostHeads);
  m.inner = c.size("intermediate_size", d.inner, kMostInner);
  m.vocabulary = c.size("vocab_size", d.vocabulary, kMostWords);
  m.longest = c.size("max_position_embeddings", d.longest, kMostTokens);
  m.normalization = Normalization::rms_norm_in_parts;
  m.activation = activation(c, "hidden_act", "silu", true);
  m.positions = Positions::rotary;
  m.joint_query_key_value = false;
  m.bias = false;
  m.query_key_value_bias = d.query_key_value_bias;
  m.tied_embedding = c.flag("tie_word_embeddings", false);
  if (c.share("attention_dropout", 0) != 0)
    c.fail("\"attention_dropout\" is not 0; dropout in attention alone is not implemented");
}

std::int64_t window_of(const Config& c, std::int64_t otherwise) {
  return c.has("sliding_window") ? c.integer("sliding_window", 0, kMostTokens) : otherwise;
}

void read_llama(const Config& c, TrainingJob& job) {
  read_llama_like(c, {11008, 0, 32000, 2048, false}, job);
  if (c.flag("attention_bias", false) != c.flag("mlp_bias", false))
    c.fail("\"attention_bias\" and \"mlp_bias\" differ; expected both true or both false");
  job.model.bias = job.model.query_key_value_bias = c.flag("attention_bias", false);
}

void read_mistral(const Config& c, TrainingJob& job) {
  read_llama_like(c, {14336, 8, 32000, 4096 * 32, false}, job);
  job.sliding_window = window_of(c, 0);
}

void read_mixtral(const Config& c, TrainingJob& job) {
  read_llama_like(c, {14336, 8, 32000, 4096 * 32, false}, job);
  job.model.experts = c.size("num_local_experts", 8, kMostHeads);
  job.model.experts_per_token = c.size("num_experts_per_tok", 2, kMostHeads);
  job.sliding_window = window_of(c, 0);
  if (c.flag("output_router_logits", false)) job.notes.push_back("The router's loss of the file is not generated.");
}

// Fused products of queries, keys and values (qkv_proj), and of gate and up (gate_up_proj), without biases.
void read_phi3(const Config& c, TrainingJob& job) {
  read_llama_like(c, {8192, 0, 32064, 4096, false, 32, 3072}, job);
  job.model.joint_query_key_value = true;
  for (const char* key : {"resid_pdrop", "embd_pdrop"})
    if (c.share(key, 0) != 0) c.fail(fmt::format("\"{}\" is not 0; dropout in this family is not implemented", key));
  if (c.has("partial_rotary_factor") && c.number("partial_rotary_factor", 1) != 1)
    job.notes.push_back("A part of each head is rotated in the file; all of it is generated as rotated.");
  job.notes.push_back("Gate and up are one product in transformers; they are generated as two.");
  job.sliding_window = window_of(c, 0);
}

// Llama with numbers that scale the embedding, both sums of a layer, scores and logits.
void read_granite(const Config& c, TrainingJob& job) {
  read_llama(c, job);
  for (const char* key : {"embedding_multiplier", "residual_multiplier", "logits_scaling"})
    if (c.number(key, 1) != 1) {
      job.notes.push_back(
          fmt::format("\"{}\" scales a tensor in transformers; the kernel and its result are not generated.", key));
    }
}

// Layer normalization, an MLP without gate, biases everywhere; queries share heads of keys, which are rotated.
void read_starcoder2(const Config& c, TrainingJob& job) {
  Model& m = job.model;
  m.layers = c.size("num_hidden_layers", 30, kMostLayers);
  m.width = c.size("hidden_size", 3072, kMostWidth);
  m.heads = c.size("num_attention_heads", 24, kMostHeads);
  m.key_value_heads = c.size("num_key_value_heads", 2, kMostHeads);
  m.inner = c.size("intermediate_size", 12288, kMostInner);
  m.vocabulary = c.size("vocab_size", 49152, kMostWords);
  m.longest = c.size("max_position_embeddings", 4096, kMostTokens);
  m.activation = activation(c, "hidden_act", "gelu_pytorch_tanh", false);
  m.positions = Positions::rotary;
  m.joint_query_key_value = false;
  m.bias = m.query_key_value_bias = c.flag("use_bias", true);
  m.tied_embedding = c.flag("tie_word_embeddings", true);
  m.dropout = one_dropout(c, {{"residual_dropout", 0.0}, {"embedding_dropout", 0.0}, {"attention_dropout", 0.0}});
  job.sliding_window = window_of(c, 0);
}

void read_qwen2(const Config& c, TrainingJob& job) {
  read_llama_like(c, {22016, 32, 151936, 32768, true}, job);
  if (c.flag("use_sliding_window", false)) job.sliding_window = window_of(c, 4096);
}

void read_qwen3(const Config& c, TrainingJob& job) {
  read_llama_like(c, {22016, 32, 151936, 32768, false}, job);
  job.model.head_size = c.size("head_dim", 128, kMostHeads);
  job.model.query_key_norm = true;
  if (c.flag("attention_bias", false)) c.fail("\"attention_bias\" is true; biases of attention alone are not implemented");
  if (c.flag("use_sliding_window", false)) job.sliding_window = window_of(c, 4096);
}

void read_qwen3_moe(const Config& c, TrainingJob& job) {
  read_llama_like(c, {768, 4, 151936, 32768, false, 24, 2048}, job);
  Model& m = job.model;
  m.head_size = c.integer("head_dim", 0, kMostHeads);
  m.query_key_norm = true;
  m.inner = c.size("moe_intermediate_size", 768, kMostInner);
  m.experts = c.size("num_experts", 128, kMostHeads);
  m.experts_per_token = c.size("num_experts_per_tok", 8, kMostHeads);
  if (c.integer("decoder_sparse_step", 1, kMostLayers) != 1 || !c.is_empty_list("mlp_only_layers"))
    c.fail("\"decoder_sparse_step\" or \"mlp_only_layers\" leaves layers without experts; expected experts in all");
  if (c.flag("attention_bias", false))
    c.fail("\"attention_bias\" is true; biases of attention alone are not implemented");
  if (c.flag("use_sliding_window", false)) job.sliding_window = window_of(c, 4096);
  if (c.flag("output_router_logits", false)) job.notes.push_back("The router's loss of the file is not generated.");
}

void read_encoder_layers(const Config& c, TrainingJob& job) {
  Model& m = job.model;
  m.layers = c.size("num_hidden_layers", 12, kMostLayers);
  m.width = c.size("hidden_size", 768, kMostWidth);
  m.heads = c.size("num_attention_heads", 12, kMostHeads);
  m.inner = c.size("intermediate_size", 3072, kMostInner);
  m.activation = activation(c, "hidden_act", "gelu", false);
  m.joint_query_key_value = false;
}

void read_bert(const Config& c, TrainingJob& job) {
  Model& m = job.model;
  m.architecture = Architecture::encoder;
  read_encoder_layers(c, job);
  m.vocabulary = c.size("vocab_size", 30522, kMostWords);
  m.longest = c.size("max_position_embeddings", 512, kMostTokens);
  m.dropout = one_dropout(c, {{"hidden_dropout_prob", 0.1}, {"attention_probs_dropout_prob", 0.1}});
  m.tied_embedding = c.flag("tie_word_embeddings", true);
  if (c.integer("type_vocab_size", 2, 100) != 2)
    c.fail("\"type_vocab_size\" is not 2; other numbers are not implemented");
  if (const std::string kind = c.text("position_embedding_type", "absolute"); kind != "absolute")
    c.fail(fmt::format("\"position_embedding_type\" is \"{:.60}\"; expected \"absolute\"", kind));
}

std::int64_t classes(const Config& c) {
  const auto named = static_cast<std::int64_t>(c.members("id2label"));
  return named > 0 ? named : c.size("num_labels", 2, kMostWords);
}

void read_vit(const Config& c, TrainingJob& job) {
  Model& m = job.model;
  m.architecture = Architecture::vision;
  read_encoder_layers(c, job);
  m.image = c.size("image_size", 224, 100000);
  m.patch = c.size("patch_size", 16, 100000);
  m.classes = classes(c);
  m.query_key_value_bias = c.flag("qkv_bias", true);
  m.dropout = one_dropout(c, {{"hidden_dropout_prob", 0.0}, {"attention_probs_dropout_prob", 0.0}});
  if (c.integer("num_channels", 3, 1000) != 3) c.fail("\"num_channels\" is not 3; expected images of three colours");
}

void read_resnet(const Config& c, TrainingJob& job) {
  Model& m = job.model;
  m.architecture = Architecture::resnet;
  m.blocks = c.list("depths", {3, 4, 6, 3});
  m.classes = classes(c);
  if (const std::string kind = c.text("layer_type", "bottleneck"); kind != "bottleneck")
    c.fail(fmt::format("\"layer_type\" is \"{:.60}\"; expected \"bottleneck\": others are not implemented", kind));
  std::vector<std::int64_t> widths;
  for (std::size_t i = 0; i < std::min<std::size_t>(m.blocks.size(), 16); ++i) widths.push_back(std::int64_t{256} << i);
  if (c.integer("embedding_size", 64, kMostWidth) != 64 || c.list("hidden_sizes", {256, 512, 1024, 2048}) != widths)
    c.fail(fmt::format("\"embedding_size\" and \"hidden_sizes\" are not ResNet's; expected 64 and {} for {} stages",
                       fmt::join(widths, ", "), m.blocks.size()));
  if (c.flag("downsample_in_first_stage", false) || c.flag("downsample_in_bottleneck", false))
    c.fail("\"downsample_in_first_stage\" and \"downsample_in_bottleneck\" are not implemented; expected false");
  if (c.integer("num_channels", 3, 1000) != 3) c.fail("\"num_channels\" is not 3; expected images of three colours");
}

using Read = void (*)(const Config&, TrainingJob&);
const std::map<std::string, Read, std::less<>> kReaders{{"bert", read_bert},       {"gpt2", read_gpt2},
                                                        {"granite", read_granite}, {"llama", read_llama},
                                                        {"mistral", read_mistral}, {"mixtral", read_mixtral},
                                                        {"phi3", read_phi3},       {"qwen2", read_qwen2},
                                                        {"qwen3", read_qwen3},     {"qwen3_moe", read_qwen3_moe},
                                                        {"resnet", read_resnet},   {"starcoder2", read_starcoder2},
                                                        {"vit", read_vit}};

// What the file says of the type of its parameters is how they are stored: a program may train them in another.
void note_storage(const Config& c, TrainingJob& job) {
  const std::string type = c.text("dtype", c.text("torch_dtype", "bfloat16"));
  if (type != "bfloat16")
    job.notes.push_back(
        fmt::format("The file stores parameters as {:.60}; how they are trained is the recipe's: bf16 unless "
                    "precision= says otherwise.",
                    type));
  if (c.has("quantization_config")) job.notes.push_back("The quantization of the file is not generated.");
}

std::string name_of(const Config& config, const std::string& type) {
  const std::string name = config.text("_name_or_path", "");
  const bool plain = !name.empty() && name.size() <= 200 && name.find_first_of("\n\r") == std::string::npos;
  return plain ? name : type;
}

}  // namespace

TrainingJob parse_hugging_face_config(const std::string& json, const std::string& name) {
  const Config config(json, name);
  const std::string type = config.text("model_type", "");
  std::vector<std::string> known;
  for (const auto& [key, reader] : kReaders) known.push_back(key);
  if (type.empty()) config.fail(fmt::format("there is no \"model_type\"; expected one of {}", fmt::join(known, ", ")));
  const auto reader = kReaders.find(type);
  if (reader == kReaders.end()) {
    const std::string near = type.size() > 60 ? "" : nearest_name(type, known);
    config.fail(fmt::format(
        "the model_type \"{:.60}\" is not known{}; expected one of {}, or describe the model in a .textproto", type,
        near.empty() ? "" : fmt::format(" (nearest: \"{}\")", near), fmt::join(known, ", ")));
  }
  TrainingJob job;
  job.model.name = name_of(config, type);
  reader->second(config, job);
  note_storage(config, job);
  if (const std::string why = contradiction(job); !why.empty()) config.fail(why);
  return job;
}

}  // namespace memwall
