// Families of models that a config.json may be of: what each key means for the network. Of each the configuration class
// of transformers gives keys and defaults; what changes the work and is not followed is refused or noted by name.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "models/workload/generate/configuration/hugging_face_config.h"
#include "models/workload/generate/configuration/workload_file.h"

namespace memwall {

using ReadFamily = void (*)(const HuggingFaceConfig&, TrainingJob&);
// By model_type.
using HuggingFaceFamilies = std::map<std::string, ReadFamily, std::less<>>;

void add_llama_families(HuggingFaceFamilies& families);    // Llama, Mistral, Mixtral, Qwen, Phi-3, Granite, StarCoder 2
void add_gemma_families(HuggingFaceFamilies& families);    // Gemma 1, 2 and 3, OLMo 2
void add_gpt_families(HuggingFaceFamilies& families);      // GPT-2, GPT-NeoX, OPT, Phi, BLOOM, Falcon
void add_encoder_families(HuggingFaceFamilies& families);  // BERT, RoBERTa, XLM-RoBERTa, DistilBERT
void add_vision_families(HuggingFaceFamilies& families);   // ViT, ResNet

// The most that a file may say.
inline constexpr std::int64_t kMostLayers = 10000, kMostHeads = 10000, kMostWidth = 1000000, kMostInner = 10000000,
                              kMostWords = 100000000, kMostTokens = 1000000000;

// What most classes call alike ("num_hidden_layers", "hidden_size", "num_attention_heads", "intermediate_size",
// "vocab_size", "max_position_embeddings"); numbers are the class's defaults. Throws as HuggingFaceConfig::size does.
struct NetworkSizes {
  std::int64_t layers, width, heads, inner, vocabulary, longest;
};
void read_sizes(const HuggingFaceConfig& c, const NetworkSizes& defaults, Model& m);

// Throw InputError where "attention_bias" is true, and where "attention_dropout" is not 0, of classes of which that is
// not implemented.
void require_no_attention_bias(const HuggingFaceConfig& c);
void require_no_attention_dropout(const HuggingFaceConfig& c);

}  // namespace memwall
