// Transformers as their modules are written in PyTorch: GPT, Llama and Mixtral (decoder), BERT (encoder), ViT (vision).
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "models/workload/generate/configuration/model_size.h"
#include "models/workload/generate/native/compiled_layer.h"
#include "models/workload/generate/network.h"
#include "models/workload/generate/operators/activation_offload.h"
#include "models/workload/generate/operators/checkpoint.h"
#include "models/workload/generate/operators/operators_parallel.h"
#include "models/workload/generate/operators/operators_transformer_engine.h"

namespace memwall {

// What a rank of a job has of a decoder: some of its layers, and of each its share.
struct ModelPart {
  std::int64_t first_layer = 0, layers = 0;
  bool embedding = true, loss = true;
  TensorParallel* tensor = nullptr;  // must outlive the network; null: layers are not split
  // Called before each part runs forward: the embedding (-1), a layer by its number, norm and output layer (-2).
  std::function<void(std::int64_t)> about_to_run{};
};

class Transformer : public Network {
 public:
  Transformer(Tape& tape, const Model& model, const Recipe& recipe);
  // REQUIRES: a decoder whose heads, inner width, vocabulary and tokens the ranks of part.tensor divide.
  Transformer(Tape& tape, const Model& model, const Recipe& recipe, const ModelPart& part);
  Tensor loss() override;
  // The forward pass of the part: from what the part before made (nothing where it has the embedding) to what the next
  // one is given, or the loss. Words and targets are this pass's.
  Tensor run_part(Tensor received, const Tensor& words, const Tensor& targets);
  // The shape of what parts hand on.
  Shape message_shape() const;

 private:
  struct Norm {
    std::string name;
    const Parameter *weight = nullptr, *bias = nullptr;
  };
  struct Tile {
    const Parameter *weight = nullptr, *bias = nullptr;
  };
  // shared_column: what it reads is gathered, and its gradient reduced, together with others'.
  enum class Split : std::uint8_t { none, column, shared_column, row };
  struct Projection {
    std::string name;
    const Parameter *weight = nullptr, *bias = nullptr;
    Split split = Split::none;
    const Parameter *down = nullptr, *up = nullptr;  // LoRA's: to the rank, and from it
    std::int64_t packed_outputs = 0, packed_inputs = 0;  // of a weight in four bits; 0: it is none
    Tensor scales{};                                     // of a weight in NF4
    // Of a TiledLinear, which has no weight besides: by outputs, then by inputs.
    std::vector<Tile> tiles{};
    std::int64_t in_splits = 1;
    Fp8Weight* fp8 = nullptr;  // by Transformer Engine
  };
  struct FeedForward {
    std::string name;  // "" where it is no module of its own
    Projection gate, up, down;
  };
  struct Layer {
    std::string name;
    Norm norm1, norm2;
    Projection qkv, q, k, v, out;
    Norm query_norm{}, key_norm{};          // of each head, or of all; without weight: none
    Norm attention_result{}, mlp_result{};  // of what the parts give, before the sum; without weight: none
    bool has_window = false;                // attention looks back sliding_window tokens
    Projection router;
    std::vector<FeedForward> mlps;  // one, or one per expert
  };
  struct Rotation {
    Tensor cosine, sine;
  };
  // What a layer is given besides its input, in the two kinds that layers with and without a window may need.
  struct LayerInputs {
    Rotation rotation{}, local_rotation{};
    Tensor mask{}, local_mask{};
    Tensor places{};             // used by no layer; a checkpointed one keeps what it is given
    Tensor alibi{}, residual{};  // BLOOM's: its attention adds the layer's input
  };

  // transformer_parameters.cpp
  Parameter* parameter(const std::string& name, const Shape& shape);
  Parameter* saved_parameter(const std::string& name, const Shape& shape);
  Norm make_norm(const std::string& prefix, const std::string& name, std::int64_t width);
  Norm make_head_norm(const std::string& prefix, const std::string& name);
  Projection make_projection(const std::string& prefix, const std::string& name, std::int64_t inputs,
                             std::int64_t outputs, bool bias);
  Projection make_adapted(const std::string& prefix, const std::string& name, std::int64_t inputs, std::int64_t outputs,
                          bool bias, Split how);
  FeedForward make_mlp(const std::string& prefix, const std::string& name);
  void see_tokens(const Parameter* whole);
  void divide(Projection& projection, Split how);
  Layer make_layer(const std::string& name);
  void make_decoder();
  void make_encoder();
  void make_vision();

  // family_parameters.cpp: where model.modules is not plain
  bool is_family() const { return model_.modules != Modules::plain; }
  Tensor kept_buffer(const std::string& name, const Shape& shape, DataType type);
  Layer make_family_layer(std::int64_t number);
  void make_family_attention(Layer& layer, const std::string& prefix);
  void make_family_norms(Layer& layer, const std::string& prefix);
  void make_rotary_buffers();
  void make_family_decoder();
  void make_family_encoder();

  // family_attention.cpp
  Rotation family_rotation(const Tensor& places, const Tensor& rates);
  Tensor rotate_by_slices(const Tensor& x, const Rotation& rotation);
  void rotate_both(Tensor& q, Tensor& k, const Rotation& rotation);
  std::array<Tensor, 4> rotate_partly(Tensor& q, Tensor& k, const Rotation& rotation);
  Tensor low_softmax(const Tensor& scores, DataType type);
  Tensor eager_scores(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask);
  Tensor family_attend(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask);
  Tensor heads_behind_tokens(Tensor y);
  Tensor family_output(const Layer& layer, const Tensor& apart);
  Tensor separate_attention(const Layer& layer, const Tensor& x, const Rotation& rotation, const Tensor& mask);
  Tensor joint_attention(const Layer& layer, const Tensor& x, const Rotation& rotation, const Tensor& mask);
  Tensor family_attention(const Layer& layer, const Tensor& x, const LayerInputs& inputs);

  // family_alibi.cpp: BLOOM; family_falcon.cpp
  Tensor alibi_of_positions(Tensor& slopes);
  Tensor bloom_attention(const Layer& layer, const Tensor& x, const LayerInputs& inputs);
  Tensor run_bloom_layer(const Layer& layer, const Tensor& x, LayerInputs inputs);
  Tensors falcon_heads(const Tensor& joint);
  Tensor falcon_scores(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask);
  Tensor falcon_attention(const Layer& layer, const Tensor& x, const Rotation& rotation, const Tensor& mask);
  Tensor run_falcon_layer(const Layer& layer, const Tensor& x, const LayerInputs& inputs);

  // family_layers.cpp
  Tensor activated(const Tensor& x);
  Tensor family_mlp(const Layer& layer, const Tensor& x);
  Tensor opt_mlp(const Layer& layer, Tensor x);
  Tensor run_family_layer(const Layer& layer, const Tensor& x, const LayerInputs& inputs);
  Tensor run_whole_family_layer(const Layer& layer, const Tensor& x, const LayerInputs& inputs);
  Tensor run_sequential(const Layer& layer, Tensor x, const LayerInputs& inputs);
  Tensor run_parallel(const Layer& layer, const Tensor& x, const LayerInputs& inputs);
  Tensor run_neox_sequential(const Layer& layer, const Tensor& x, const LayerInputs& inputs);
  Tensor run_opt_layer(const Layer& layer, Tensor x, const LayerInputs& inputs);
  Tensor run_encoder_layer(const Layer& layer, Tensor x, const LayerInputs& inputs);

  // family_network.cpp
  Tensor family_decoder_loss();
  Tensor family_decoder_output();
  Tensor family_encoder_loss();
  Tensor family_encoder_words();
  Tensor counted_places();
  Tensor opt_places(Tensor& ones);
  Tensor roberta_places();
  Tensor seen_tokens(std::int64_t window);
  Tensor causal_mask(std::int64_t window);
  Tensor embedded(const char* name, const Parameter& table, const Tensor& rows);

  // transformer_tiles.cpp
  Projection make_tiled(const std::string& prefix, const std::string& name, std::int64_t inputs, std::int64_t outputs,
                        bool bias);
  Tensor tiled(const Projection& projection, const Tensor& x);
  Tensor product_of(const Tile& tile, const Tensor& x);

  // transformer_fp8.cpp
  bool by_transformer_engine() const { return recipe_.precision == Precision::fp8_transformer_engine; }
  void keep_in_fp8(Projection& projection, const std::string& name);
  bool is_normalized_in_fp8(const Norm& norm) const;
  Tensor fp8_product(const Projection& projection, const Tensor& x);
  // In front of layers and behind them: where scales are made of what passes have seen.
  Tensor begin_fp8_pass(const Tensor& x);
  void end_fp8_pass();

  // transformer_part.cpp
  void about_to_run(std::int64_t part) const {
    if (part_.about_to_run) part_.about_to_run(part);
  }
  // Of a checkpointed region.
  SecondRun second_run() const;
  Tensor split_product(const Projection& projection, const Tensor& x);
  Tensor input_of_columns(const Tensor& x);
  // Of columns that read the same, beside its gather (async tensor parallelism).
  // Columns that read one input are one operator: torchtitan's async tensor parallelism, and its float8.
  bool multiplies_together() const {
    return part_.tensor && !joins_columns() &&
           (part_.tensor->overlaps() || (recipe_.precision == Precision::fp8 && part_.tensor->by_tokens()));
  }
  Tensors products_together(const Tensor& x, std::initializer_list<const Projection*> projections);
  // Megatron-LM: queries, keys and values by one product, gate and up by another, fused kernels between.
  bool joins_columns() const {
    return part_.tensor && recipe_.parallel.framework != ParallelFramework::torchtitan;
  }
  Tensor part_embedding();
  Tensor part_layers(Tensor x);
  Tensor part_loss(Tensor x);

  // transformer.cpp
  Tensor normalize(const Norm& norm, const Tensor& x);
  Tensor project(const Projection& projection, const Tensor& x);
  Tensor packed_product(const Projection& projection, const Tensor& x);
  Tensor split_adapted(const Projection& projection, const Tensor& x, Tensor y);  // transformer_part.cpp
  Tensor adapted(const Projection& projection, const Tensor& x, Tensor y);
  Tensor drop(const std::string& name, const Tensor& x);
  Tensor run_layer(const Layer& layer, const Tensor& x, const Rotation& rotation);
  CompiledLayerPlan plan_of(const Layer& layer) const;
  Tensor run_whole_layer(const Layer& layer, const Tensor& x, const Rotation& rotation);
  Tensor run_norm_first(const Layer& layer, Tensor x, const Rotation& rotation);
  Tensor run_fused_layer(const Layer& layer, Tensor x);
  Tensor run_norm_last(const Layer& layer, Tensor x);
  Tensor decoder_loss();
  Tensor encoder_loss();
  Tensor vision_loss();
  Tensor embedded_words();
  Tensor loss_of_last(Tensor x);
  Tensor loss_beside_logits(Tensor logits);
  Tensor loss_of(Tensor logits, const Tensor& targets);
  Tensor chunked_loss(Tensor x);

  // transformer_attention.cpp
  Rotation make_rotation();
  Rotation kept_rotation();
  Tensor rotate_pairs(const Tensor& x, const Rotation& rotation);
  Tensor pairwise_attention(const Layer& layer, const Tensor& x, const Rotation& rotation);
  Tensor all_heads_of(const Tensor& x);
  Tensor rotate(const Tensor& x, const Rotation& rotation);
  Tensor attention(const Layer& layer, const Tensor& x, const Rotation& rotation);
  Tensor attend(const Tensor& q, const Tensor& k, const Tensor& v);
  Tensor repeated_heads(const Tensor& x);
  Tensor attend_whole(const Tensor& q, const Tensor& k, const Tensor& v);
  Tensor fused_plain_attention(const Tensor& q, const Tensor& k, const Tensor& v);
  Tensor plain_attention(const Tensor& q, const Tensor& k, const Tensor& v);
  void look_at_positions();
  Tensor heads_of(const Tensor& x, std::int64_t heads, const Norm* norm = nullptr);
  Tensor merge(const Layer& layer, const Tensor& y);

  // transformer_mlp.cpp
  Tensor mlp(const Layer& layer, const Tensor& x);
  Tensor feed_forward(const FeedForward& mlp, const Tensor& x);
  Tensor mixture(const Layer& layer, const Tensor& x);
  Tensor experts_of(const Layer& layer, const Tensor& rows);

  Tape& tape_;
  const Model& model_;
  const Recipe& recipe_;
  ModelPart part_;
  std::int64_t split_ = 1;  // ranks that share each layer
  std::int64_t sequence_, heads_, key_value_heads_, head_size_;
  DataType type_;
  TransformerEngine engine_{};
  std::deque<Fp8Weight> fp8_weights_{};      // one for each linear layer by Transformer Engine
  std::optional<TensorParallel> of_head_{};  // the output layer's products, which no userbuffers run beside
  Parameter *words_ = nullptr, *positions_ = nullptr, *types_ = nullptr, *token_ = nullptr;
  Projection patches_, transform_, head_;
  Norm norm_, transform_norm_;
  std::vector<Layer> layers_;
  std::unique_ptr<ActivationOffload> offload_;
  Tensor input_, targets_, tables_, mask_, returned_logits_;
  Norm embedding_norm_{};
  Tensor embedding_scale_, rotary_rates_, local_rotary_rates_, kept_places_, kept_types_;  // buffers of families
};

}  // namespace memwall
