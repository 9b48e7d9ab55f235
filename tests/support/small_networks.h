// A small network of each architecture that the generators write, for tests that ask all of them.
#pragma once

#include <vector>

#include "models/workload/generate/configuration/model.h"

namespace memwall {

struct SmallNetwork {
  const char* name;
  Model model;
};

inline Model small_words(Architecture architecture) {
  Model m;
  m.name = "small";
  m.architecture = architecture;
  m.layers = 2;
  m.width = 64;
  m.heads = 4;
  m.vocabulary = 96;
  m.longest = 32;
  return m;
}

inline Model small_rotary_decoder() {
  Model m = small_words(Architecture::decoder);
  m.key_value_heads = 2;
  m.inner = 160;
  m.normalization = Normalization::rms_norm;
  m.activation = Activation::swiglu;
  m.positions = Positions::rotary;
  m.bias = m.query_key_value_bias = m.joint_query_key_value = m.tied_embedding = false;
  return m;
}

// GPT with tied embeddings, Llama with grouped heads, BERT, ViT, ResNet of bottleneck blocks.
inline std::vector<SmallNetwork> small_networks() {
  Model vision = small_words(Architecture::vision);
  vision.image = 32;
  vision.patch = 8;
  vision.classes = 10;
  Model residual;
  residual.name = "small";
  residual.architecture = Architecture::resnet;
  residual.image = 32;
  residual.classes = 10;
  residual.blocks = {1, 1};
  return {{"gpt", small_words(Architecture::decoder)},
          {"llama", small_rotary_decoder()},
          {"bert", small_words(Architecture::encoder)},
          {"vit", vision},
          {"resnet", residual}};
}

}  // namespace memwall
