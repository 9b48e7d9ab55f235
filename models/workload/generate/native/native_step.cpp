#include "models/workload/generate/native/native_step.h"

#include <fmt/format.h>

#include <algorithm>

#include "models/workload/flops.h"
#include "models/workload/generate/native/native_program.h"
#include "sim/error.h"

namespace memwall {
namespace {

constexpr std::int64_t kVocabularyMultiple = 128;  // rows of the word embedding are padded to that

void require(bool holds, const char* setting, const char* expected) {
  if (!holds)
    throw UsageError(fmt::format("`execution: native` is a step of llm.c; expected {} in `{}`.", expected, setting));
}

void require_supported(const Model& m, const Recipe& r) {
  require(m.architecture == Architecture::decoder, "architecture", "a decoder");
  require(m.normalization == Normalization::layer_norm, "normalization", "layer_norm");
  require(m.activation == Activation::gelu || m.activation == Activation::gelu_tanh, "activation", "gelu");
  require(m.positions == Positions::learned, "positions", "learned");
  require(m.bias && m.query_key_value_bias && m.joint_query_key_value, "bias", "biases and one product for Q, K, V");
  require(m.tied_embedding, "tied_embedding", "true");
  require(!m.query_key_norm, "query_key_norm", "false");
  require(m.dropout == 0 && m.experts == 0, "dropout", "neither dropout nor experts");
  require(m.key_value_heads == 0 || m.key_value_heads == m.heads, "key_value_heads", "as many as heads");
  require(m.head_size == 0 && m.inner == 0, "inner", "heads and an MLP of the usual sizes (0)");
  require(r.precision == Precision::bf16, "precision", "bf16");
  require(r.attention == Attention::flash || r.attention == Attention::cudnn, "attention", "flash or cudnn");
  require(r.optimizer == OptimizerKind::adamw && !r.optimizer_in_backward, "optimizer", "adamw after backward");
  require(has_master_parameters(r), "master_parameters", "true");
  require(r.checkpoint == ActivationCheckpoint::none && !r.activation_offload, "checkpoint", "none");
  require(r.lora_rank == 0 && r.loss_chunks == 1 && !r.fused_kernels, "lora_rank", "0, one loss, no fused_kernels");
}

}  // namespace

NativeStep::NativeStep(const Model& model, const Recipe& recipe)
    : model_(model),
      recipe_(recipe),
      tape_(model.name),
      b_(recipe.batch),
      t_(recipe.sequence ? recipe.sequence : model.longest),
      c_(model.width),
      rows_(b_ * t_),
      layers_(model.layers),
      vocabulary_((model.vocabulary + kVocabularyMultiple - 1) / kVocabularyMultiple * kVocabularyMultiple) {
  tape_.dispatch = Dispatch::native;
  tape_.gradients_enabled = false;
  if (recipe.data_parallel > 1) nccl_ = tape_.builder().add_stream("nccl", StreamRole::communication);
  make_weights();
  make_activations();
}

void NativeStep::make_weights() {
  const std::int64_t l = layers_, c = c_;
  const std::array<Shape, kWeights> shapes{{{vocabulary_, c},
                                            {model_.longest, c},
                                            {l, c},
                                            {l, c},
                                            {l, 3 * c, c},
                                            {l, 3 * c},
                                            {l, c, c},
                                            {l, c},
                                            {l, c},
                                            {l, c},
                                            {l, 4 * c, c},
                                            {l, 4 * c},
                                            {l, c, 4 * c},
                                            {l, c},
                                            {c},
                                            {c}}};
  const std::int64_t ranks = recipe_.data_parallel;
  std::int64_t in_layer = 0;
  for (std::size_t i = 0; i < kWeights; ++i) {
    const std::string name = kNativeWeightNames[i];
    const Shape part{(elements_of(shapes[i]) + ranks - 1) / ranks};
    NativeWeight w;
    w.value = buffer(name, shapes[i], DataType::bf16, StorageKind::parameter);
    if (i < kLn1w || i > kFcprojb)
      w.gradient = buffer(name + ".grad", shapes[i], DataType::bf16, StorageKind::gradient);
    else
      in_layer += elements_of(shapes[i]) / layers_;
    w.master = buffer(name + ".master", part, DataType::fp32, StorageKind::optimizer_state);
    w.first = buffer(name + ".m", part, DataType::fp32, StorageKind::optimizer_state);
    w.second = buffer(name + ".v", part, DataType::fp32, StorageKind::optimizer_state);
    weights_.push_back(w);
  }
  for (std::int64_t i = 0; i < layers_; ++i)
    layer_gradients_.push_back(
        buffer(fmt::format("layers.{}.grad", i), {in_layer}, DataType::bf16, StorageKind::gradient));
}

void NativeStep::make_activations() {
  const Shape row{rows_, c_}, statistics{rows_};
  words_ = buffer("inputs", {b_, t_}, DataType::int32, StorageKind::input);
  targets_ = buffer("targets", {b_, t_}, DataType::int32, StorageKind::input);
  encoded_ = activation("encoded", row);
  for (std::int64_t i = 0; i < layers_; ++i) {
    const auto named = [&](const char* what) { return fmt::format("{}.{}", what, i); };
    NativeActivations a;
    a.ln1 = activation(named("ln1"), row);
    a.ln1_mean = activation(named("ln1_mean"), statistics, DataType::fp32);
    a.ln1_rstd = activation(named("ln1_rstd"), statistics, DataType::fp32);
    a.qkv = activation(named("qkvr"), {rows_, 3 * c_});
    a.atty = activation(named("atty"), row);
    a.att = activation(named("att"), {b_, model_.heads, t_}, DataType::fp32);
    a.residual2 = activation(named("residual2"), row);
    a.ln2 = activation(named("ln2"), row);
    a.ln2_mean = activation(named("ln2_mean"), statistics, DataType::fp32);
    a.ln2_rstd = activation(named("ln2_rstd"), statistics, DataType::fp32);
    a.fch = activation(named("fch"), {rows_, 4 * c_});
    a.fch_gelu = activation(named("fch_gelu"), {rows_, 4 * c_});
    a.residual3 = activation(named("residual3"), row);
    acts_.push_back(a);
  }
  lnf_ = activation("lnf", row);
  lnf_mean_ = activation("lnf_mean", statistics, DataType::fp32);
  lnf_rstd_ = activation("lnf_rstd", statistics, DataType::fp32);
  losses_ = activation("losses", statistics, DataType::fp32);
  output_ = activation("output", {rows_, std::max(3 * c_, std::max(model_.heads * t_, vocabulary_))});
  scratch_bt4c_ = activation("scratch_bt4c", {rows_, 4 * c_});
  scratch_btc_ = activation("scratch_btc", row);
  norm_ = buffer("grad_norm", {1024}, DataType::fp32, StorageKind::workspace);
}

void NativeStep::kernel(std::string_view name, OperatorClass kind, double flops, const Shape& shape,
                        std::initializer_list<const Tensor*> reads, std::initializer_list<const Tensor*> writes,
                        Bytes bytes) {
  TapeKernel work;
  work.name = name;
  work.operator_class = kind;
  work.type = DataType::bf16;
  work.flops = flops;
  work.shape = shape;
  work.bytes = bytes;
  tape_.kernel(work, reads, writes);
}

// NativeWeights are stacked: only one layer's share of their bytes is touched.
void NativeStep::gemm(std::string_view name, std::int64_t m, std::int64_t n, std::int64_t k,
                      std::initializer_list<const Tensor*> reads, const Tensor& write, Bytes bytes) {
  kernel(name, OperatorClass::gemm, gemm_flops(static_cast<double>(m), static_cast<double>(n), static_cast<double>(k)),
         {1, m, n, k}, reads, {&write}, bytes);
}

void NativeStep::normalize(std::string_view name, double flops, std::initializer_list<const Tensor*> reads,
                           std::initializer_list<const Tensor*> writes) {
  Bytes bytes = 0;
  // The shared output buffer is as wide as the logits; a kernel reads of it what the one before wrote.
  for (const Tensor* x : reads)
    bytes += x->dimensions() == 2 && x->shape[0] == rows_ ? std::min<Bytes>(x->bytes(), 2 * rows_ * c_) : 2 * c_;
  for (const Tensor* x : writes) bytes += x->bytes();
  kernel(name, OperatorClass::normalization, flops * static_cast<double>(rows_ * c_), {rows_, c_}, reads, writes,
         bytes);
}

void NativeStep::attention(bool backward, const NativeActivations& a) {
  const std::int64_t size = c_ / model_.heads;
  const auto n = [](std::int64_t x) { return static_cast<double>(x); };
  const Shape shape = with_attention_kernel({b_, model_.heads, model_.heads, t_, t_, size, 1}, AttentionKernel::cudnn);
  if (!backward)
    return kernel("attention_forward_cudnn", OperatorClass::attention,
                  attention_flops(n(b_ * model_.heads), n(t_), n(t_), n(size), n(size)), shape, {&a.qkv},
                  {&a.atty, &a.att});
  kernel("attention_backward_cudnn", OperatorClass::attention,
         attention_backward_flops(n(b_ * model_.heads), n(t_), n(t_), n(size), n(size)), shape,
         {&scratch_btc_, &a.qkv, &a.atty, &a.att}, {&scratch_bt4c_}, (3 + 3 + 2) * 2 * rows_ * c_ + a.att.bytes());
}

void NativeStep::forward_layer(std::size_t layer, const Tensor& residual) {
  const ModuleScope scope(tape_, fmt::format("layers.{}", layer));
  const NativeActivations& a = acts_[layer];
  const std::int64_t c = c_, row = 2 * rows_ * c;
  gemm("matmul_qkv", rows_, 3 * c, c, {&a.ln1, &weights_[kQkvw].value, &weights_[kQkvb].value}, a.qkv,
       4 * row + 2 * 3 * c * (c + 1));
  attention(false, a);
  gemm("matmul_attproj", rows_, c, c, {&a.atty, &weights_[kProjw].value, &weights_[kProjb].value}, output_,
       2 * row + 2 * c * (c + 1));
  normalize("fused_residual_forward", 8, {&residual, &output_, &weights_[kLn2w].value, &weights_[kLn2b].value},
            {&a.residual2, &a.ln2, &a.ln2_mean, &a.ln2_rstd});
  gemm("matmul_fc", rows_, 4 * c, c, {&a.ln2, &weights_[kFcw].value, &weights_[kFcb].value}, a.fch,
       5 * row + 2 * 4 * c * (c + 1));
  kernel("gelu_forward", OperatorClass::elementwise, static_cast<double>(4 * rows_ * c), {4 * rows_ * c}, {&a.fch},
         {&a.fch_gelu});
  gemm("matmul_fcproj", rows_, c, 4 * c, {&a.fch_gelu, &weights_[kFcprojw].value, &weights_[kFcprojb].value}, output_,
       5 * row + 2 * c * (4 * c + 1));
  const bool last = layer + 1 == acts_.size();
  const Tensor &weight = weights_[last ? kLnfw : kLn1w].value, &bias = weights_[last ? kLnfb : kLn1b].value;
  if (last)
    normalize("fused_residual_forward", 8, {&a.residual2, &output_, &weight, &bias},
              {&a.residual3, &lnf_, &lnf_mean_, &lnf_rstd_});
  else
    normalize("fused_residual_forward", 8, {&a.residual2, &output_, &weight, &bias},
              {&a.residual3, &acts_[layer + 1].ln1, &acts_[layer + 1].ln1_mean, &acts_[layer + 1].ln1_rstd});
}

void NativeStep::forward() {
  tape_.phase = Phase::forward;
  kernel("encoder_forward", OperatorClass::embedding, static_cast<double>(rows_ * c_), {rows_, c_, vocabulary_},
         {&words_, &weights_[kWte].value, &weights_[kWpe].value}, {&encoded_}, 3 * encoded_.bytes() + words_.bytes());
  normalize("layernorm_forward", 7, {&encoded_, &weights_[kLn1w].value, &weights_[kLn1b].value},
            {&acts_[0].ln1, &acts_[0].ln1_mean, &acts_[0].ln1_rstd});
  for (std::size_t i = 0; i < acts_.size(); ++i) forward_layer(i, i == 0 ? encoded_ : acts_[i - 1].residual3);
  const Bytes logits = 2 * rows_ * vocabulary_;
  gemm("matmul_logits", rows_, vocabulary_, c_, {&lnf_, &weights_[kWte].value}, output_,
       lnf_.bytes() + weights_[kWte].value.bytes() + logits);
  kernel("fused_classifier", OperatorClass::reduction, 9 * static_cast<double>(rows_ * vocabulary_),
         {rows_, vocabulary_}, {&output_, &targets_}, {&output_, &losses_}, 2 * logits + losses_.bytes());
}

Trace native_step(const Model& model, const Recipe& recipe) {
  require_supported(model, recipe);
  return NativeStep(model, recipe).run();
}

}  // namespace memwall
