// The program of a step of llm.c: its buffers, and the kernels in the order in which it launches them. Names are those
// of train_gpt2.cu, so that the two can be read side by side: b, t, c are batch, length and width; wte, wpe word and
// position embeddings; ln a normalization; att attention; fc and fcproj the MLP's two products; w weight, b bias.
#pragma once

#include <array>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "models/workload/generate/configuration/model.h"
#include "models/workload/generate/configuration/recipe.h"
#include "models/workload/generate/operators/tape.h"

namespace memwall {

// One of llm.c's 16 parameter tensors: those of a layer are stacked.
struct NativeWeight {
  Tensor value, gradient, master, first, second;
};

enum NativeWeights {
  kWte,
  kWpe,
  kLn1w,
  kLn1b,
  kQkvw,
  kQkvb,
  kProjw,
  kProjb,
  kLn2w,
  kLn2b,
  kFcw,
  kFcb,
  kFcprojw,
  kFcprojb,
  kLnfw,
  kLnfb,
  kWeights
};
constexpr std::array<const char*, kWeights> kNativeWeightNames{"wte",      "wpe",      "ln1w", "ln1b", "qkvw", "qkvb",
                                                               "attprojw", "attprojb", "ln2w", "ln2b", "fcw",  "fcb",
                                                               "fcprojw",  "fcprojb",  "lnfw", "lnfb"};

struct NativeActivations {
  Tensor ln1, ln1_mean, ln1_rstd, qkv, atty, att, residual2, ln2, ln2_mean, ln2_rstd, fch, fch_gelu, residual3;
};

class NativeStep {
 public:
  NativeStep(const Model& model, const Recipe& recipe);
  Trace run();

 private:
  Tensor buffer(const std::string& name, const Shape& shape, DataType type, StorageKind kind) {
    return tape_.permanent(name, shape, type, kind);
  }
  Tensor activation(const std::string& name, const Shape& shape, DataType type = DataType::bf16) {
    return buffer(name, shape, type, StorageKind::activation);
  }
  void make_weights();
  void make_activations();

  void kernel(std::string_view name, OperatorClass kind, double flops, const Shape& shape,
              std::initializer_list<const Tensor*> reads, std::initializer_list<const Tensor*> writes,
              Bytes bytes = -1);
  void gemm(std::string_view name, std::int64_t m, std::int64_t n, std::int64_t k,
            std::initializer_list<const Tensor*> reads, const Tensor& write, Bytes weight_bytes);
  void normalize(std::string_view name, double flops, std::initializer_list<const Tensor*> reads,
                 std::initializer_list<const Tensor*> writes);
  void attention(bool backward, const NativeActivations& a);
  void matmul_backward(NativeWeights weight, NativeWeights bias, const Tensor& dout, const Tensor& in,
                       const Tensor& din, const Tensor& before_gelu = {});
  void forward();
  void forward_layer(std::size_t layer, const Tensor& residual);
  void backward(bool first, bool last);
  void backward_layer(std::size_t layer);
  void layernorm_backward(NativeWeights weight, NativeWeights bias, const Tensor& din, const Tensor& x,
                          const Tensor& mean, const Tensor& rstd);
  void clear(const Tensor& tensor);
  void reduce_layer(std::size_t layer);
  void collective(CollectiveKind kind, Bytes bytes, const Tensor& tensor);
  void hand_over(std::uint16_t from, std::uint16_t to);
  void update();
  // Where a weight's gradient lies: those of a layer are one storage, since they are reduced together.
  const Tensor& gradient(NativeWeights weight) const {
    return weight >= kLn1w && weight <= kFcprojb ? layer_gradients_[layer_] : weights_[weight].gradient;
  }
  Bytes share(Bytes bytes) const { return bytes / recipe_.data_parallel; }

  const Model& model_;
  const Recipe& recipe_;
  Tape tape_;
  std::int64_t b_, t_, c_, rows_, layers_, vocabulary_;
  std::uint16_t nccl_ = 0;
  std::vector<NativeWeight> weights_;
  std::vector<Tensor> layer_gradients_;
  std::size_t layer_ = 0;  // that backward is in
  std::vector<NativeActivations> acts_;
  Tensor words_, targets_, encoded_, lnf_, lnf_mean_, lnf_rstd_, losses_, output_, scratch_bt4c_, scratch_btc_, norm_;
};

}  // namespace memwall
