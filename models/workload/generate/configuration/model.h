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
  rms_norm,           // one operator (torch.nn.RMSNorm)
  rms_norm_in_parts,  // written out in fp32 (x.float(), pow, mean, rsqrt, mul, cast, mul), as Hugging Face's Llama has
                      // it
  rms_norm_in_fp32,   // likewise, but cast behind the weight (OLMo 2)
  rms_norm_zero_centered  // likewise, by 1 + weight in fp32 (Gemma; Megatron-LM's layernorm_zero_centered_gamma)
};

enum class Activation : std::uint8_t {
  relu,
  gelu,
  gelu_tanh,
  swiglu,
  geglu,                // gated by GELU's approximation with tanh (Gemma)
  gelu_tanh_in_parts,   // written out (Hugging Face's NewGELUActivation)
  gelu_tanh_recomputed  // written out, its input alone is kept (BLOOM's GeLUFunction)
};

enum class Positions : std::uint8_t { none, learned, rotary, alibi };

// Where a layer normalizes, and what its MLP reads; sums are with the layer's input.
enum class LayerOrder : std::uint8_t {
  pre_norm,             // x + attention(norm(x)), then x + mlp(norm(x))
  sandwich_norm,        // x + norm(attention(norm(x))), then the MLP likewise (Gemma 2)
  reordered_norm,       // x + norm(attention(x)), then the MLP likewise (OLMo 2)
  parallel,             // x + attention(norm(x)) + mlp(norm(x)), a norm for each (GPT-NeoX's use_parallel_residual)
  parallel_shared_norm  // likewise, one norm for both (Phi, Falcon 7B)
};

// Whose code writes the layers. Not `plain`: the class of that name of Hugging Face's transformers 5.23, whose
// operators, order of parameters and local variables are followed.
enum class Modules : std::uint8_t {
  plain,  // traces/samples/captures/models.py
  gemma,  // Gemma 1, 2 and 3
  olmo2,
  gpt_neox,
  opt,
  phi,
  bloom,
  falcon,
  roberta,  // and XLM-RoBERTa
  distilbert
};

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
  Modules modules = Modules::plain;
  LayerOrder layer_order = LayerOrder::pre_norm;
  bool query_key_norm_over_heads = false;  // with query_key_norm: over all heads together (OLMo 2)
  std::int64_t rotary_size = 0;            // elements of each head that are rotated; 0: all (partial_rotary_factor)
  // Tokens that attention looks back, itself among them, in layers that have a window; 0: no layer has one.
  std::int64_t sliding_window = 0;
  // Every n-th layer has no window (Gemma 2: 2, Gemma 3: 6); 0: all have one.
  std::int64_t full_attention_every = 0;
  bool local_rotary = false;           // layers with a window are rotated by tables of their own (Gemma 3)
  bool scaled_embedding = false;       // embedded words are multiplied by the root of the width (Gemma)
  bool normalized_embedding = false;   // a normalization behind the embedding (BLOOM)
  bool attention_softcapping = false;  // scores become c tanh(scores / c) (Gemma 2)
  bool logit_softcapping = false;      // logits likewise
  bool output_bias = false;            // of a decoder's output layer (Phi)
  std::int64_t position_offset = 0;    // rows of learned positions before the first that is used (OPT, RoBERTa: 2)
  std::int64_t token_types = 2;        // rows of an encoder's embedding of them; 0: it has none (DistilBERT)
  bool residual_dropout_only = false;  // `dropout` is of attention's and the MLP's result alone (OPT)
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
