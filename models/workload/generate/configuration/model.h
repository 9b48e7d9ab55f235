// A network as a configuration: what a generator needs to know to write down its training step
// without running it. Sizes are numbers of elements unless a comment says otherwise.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace memwall {

enum class Architecture : std::uint8_t {
  decoder,  // GPT, Llama, Mixtral: causal attention, a next-token loss
  encoder,  // BERT: attention both ways, normalization after each part, a masked-token loss
  vision,   // ViT: patches, attention both ways, one class per image
  resnet,   // bottleneck blocks
  vgg       // convolutions, pooling, three linear layers
};

enum class Normalization : std::uint8_t {
  layer_norm,
  rms_norm,          // one operator (torch.nn.RMSNorm)
  rms_norm_in_parts  // written out in fp32 (x.float(), pow, mean, rsqrt, mul, cast, mul), as Hugging Face's Llama has
                     // it
};

enum class Activation : std::uint8_t { relu, gelu, gelu_tanh, swiglu };

enum class Positions : std::uint8_t { none, learned, rotary };

struct Model {
  std::string name;
  Architecture architecture = Architecture::decoder;

  // Transformers.
  std::int64_t layers = 0, width = 0, heads = 0;
  std::int64_t key_value_heads = 0;          // 0: as many as heads
  std::int64_t head_size = 0;                // 0: width / heads
  std::int64_t inner = 0;                    // width of the MLP; 0: 4 x width
  std::int64_t vocabulary = 0, longest = 0;  // longest: rows of learned positions
  Normalization normalization = Normalization::layer_norm;
  Activation activation = Activation::gelu;
  Positions positions = Positions::learned;
  bool bias = true;                   // of linear layers
  bool query_key_value_bias = true;   // where it differs (Qwen: only there)
  bool joint_query_key_value = true;  // one product for the three (GPT-2), or three (Llama)
  bool tied_embedding = true;         // the output layer shares the word embedding
  // Rotated as pairs in fp32, by tables that are made once (torchtune); otherwise by halves, in the type of the data,
  // by tables made in each step (Hugging Face).
  bool rotary_in_fp32 = false;
  bool expanded_key_value = false;  // keys and values are copied to all heads before attention (torchtune)
  bool query_key_norm = false;      // queries and keys are normalized head by head before rotation (Qwen 3)
  double dropout = 0;               // after embedding, attention and MLP, and on attention scores
  std::int64_t experts = 0, experts_per_token = 0;  // mixture of experts; 0: a plain MLP

  // Images.
  std::int64_t image = 224, patch = 16, classes = 1000;
  std::vector<std::int64_t> blocks;    // resnet: blocks per stage {3, 4, 6, 3}
  std::vector<std::int64_t> channels;  // vgg: output channels of each convolution, 0 = a pooling
  bool batch_norm = false;             // vgg
};

// Elements of all parameters.
std::int64_t parameter_count(const Model& model);

}  // namespace memwall
