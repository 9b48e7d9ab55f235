// Backward, the reduction of gradients and the update of llm.c.
#include <fmt/format.h>

#include "models/workload/generate/native/native_program.h"

namespace memwall {

// Bias (its sum, then over blocks), gradient of the input, gradient of the weight, which is added to.
void NativeStep::matmul_backward(NativeWeights weight, NativeWeights bias, const Tensor& dout, const Tensor& in,
                                 const Tensor& din, const Tensor& before_gelu) {
  const Shape& shape = weights_[weight].value.shape;
  const std::int64_t outputs = shape[1], inputs = shape[2];
  const Bytes w = 2 * inputs * outputs, x = 2 * rows_ * inputs, y = 2 * rows_ * outputs;
  kernel("matmul_backward_bias", OperatorClass::reduction, static_cast<double>(rows_ * outputs), {outputs, rows_},
         {&dout, &gradient(bias)}, {&output_, &gradient(bias)}, y + 4 * outputs);
  gemm("matmul_backward_input", rows_, inputs, outputs, {&dout, &weights_[weight].value}, din, w + x + y);
  if (before_gelu)
    kernel("gelu_backward_inplace", OperatorClass::elementwise, static_cast<double>(rows_ * inputs), {rows_ * inputs},
           {&din, &before_gelu}, {&din}, 3 * x);
  gemm("matmul_backward_weight", outputs, inputs, rows_, {&dout, &in, &gradient(weight)}, gradient(weight),
       2 * w + x + y);
}

// Adds to the gradient of the residual stream. The output's buffer is scratch here.
void NativeStep::layernorm_backward(NativeWeights weight, NativeWeights bias, const Tensor& din, const Tensor& x,
                                    const Tensor& mean, const Tensor& rstd) {
  kernel("layernorm_backward", OperatorClass::normalization, 14 * static_cast<double>(rows_ * c_), {rows_, c_},
         {&scratch_btc_, &din, &x, &mean, &rstd, &weights_[weight].value, &gradient(weight), &gradient(bias)},
         {&scratch_btc_, &output_, &gradient(weight), &gradient(bias)},
         4 * 2 * rows_ * c_ + mean.bytes() + rstd.bytes() + 10 * c_);
}

// The last residual's buffer holds the gradient of what a product read; the stream's own is scratch_btc.
void NativeStep::backward_layer(std::size_t layer) {
  const ModuleScope scope(tape_, fmt::format("layers.{}", layer));
  layer_ = layer;
  const NativeActivations& a = acts_[layer];
  const Tensor& residual = layer == 0 ? encoded_ : acts_[layer - 1].residual3;
  const Tensor& d = acts_.back().residual3;
  matmul_backward(kFcprojw, kFcprojb, scratch_btc_, a.fch_gelu, scratch_bt4c_, a.fch);
  matmul_backward(kFcw, kFcb, scratch_bt4c_, a.ln2, d);
  layernorm_backward(kLn2w, kLn2b, d, a.residual2, a.ln2_mean, a.ln2_rstd);
  matmul_backward(kProjw, kProjb, scratch_btc_, a.atty, d);
  attention(true, a);
  matmul_backward(kQkvw, kQkvb, scratch_bt4c_, a.ln1, d);
  layernorm_backward(kLn1w, kLn1b, d, residual, a.ln1_mean, a.ln1_rstd);
}

void NativeStep::backward(bool first, bool last) {
  tape_.phase = Phase::backward;
  tape_.mark("loss");
  if (first)
    for (const NativeWeight& w : weights_)
      if (w.gradient) clear(w.gradient);
  if (first)
    for (const Tensor& g : layer_gradients_) clear(g);
  clear(scratch_btc_);
  const Bytes x = 2 * rows_ * c_, w = weights_[kWte].value.bytes(), logits = 2 * rows_ * vocabulary_;
  gemm("matmul_backward_input", rows_, c_, vocabulary_, {&output_, &weights_[kWte].value}, scratch_bt4c_,
       w + x + logits);
  gemm("matmul_backward_weight", vocabulary_, c_, rows_, {&output_, &lnf_, &weights_[kWte].gradient},
       weights_[kWte].gradient, 2 * w + x + logits);
  layernorm_backward(kLnfw, kLnfb, scratch_bt4c_, acts_.back().residual3, lnf_mean_, lnf_rstd_);
  for (std::size_t i = acts_.size(); i-- > 0;) {
    backward_layer(i);
    if (last) reduce_layer(i);
  }
  kernel("encoder_backward", OperatorClass::embedding, static_cast<double>(2 * rows_ * c_), {rows_, c_, vocabulary_},
         {&scratch_btc_, &words_, &weights_[kWte].gradient, &weights_[kWpe].gradient},
         {&weights_[kWte].gradient, &weights_[kWpe].gradient}, 2 * x + 2 * x + words_.bytes());
  if (last && recipe_.data_parallel > 1) {
    hand_over(0, nccl_);
    for (const NativeWeights i : {kWte, kWpe, kLnfw, kLnfb})
      collective(CollectiveKind::reduce_scatter, weights_[i].gradient.bytes(), weights_[i].gradient);
    hand_over(nccl_, 0);
  }
}

void NativeStep::clear(const Tensor& tensor) {
  Op op;
  op.kind = OpKind::memset;
  op.bytes = tensor.bytes();
  const Tensor* writes[] = {&tensor};
  tape_.append(op, "cudaMemsetAsync", {}, writes);
}

// One group call for the 12 tensors of a layer, beside the next layer's backward.
void NativeStep::reduce_layer(std::size_t layer) {
  if (recipe_.data_parallel == 1) return;
  hand_over(0, nccl_);
  collective(CollectiveKind::reduce_scatter, layer_gradients_[layer].bytes(), layer_gradients_[layer]);
}

void NativeStep::hand_over(std::uint16_t from, std::uint16_t to) {
  const std::uint32_t event = tape_.builder().add_event();
  tape_.builder().record(event, from, 0);
  tape_.builder().wait(event, to, 0);
}

// In a ring each rank sends (N-1)/N of the buffer.
void NativeStep::collective(CollectiveKind kind, Bytes bytes, const Tensor& tensor) {
  Op op;
  op.kind = OpKind::collective;
  op.collective = kind;
  op.stream = nccl_;
  op.data_type = tensor.type;
  op.bytes = share(bytes) * (recipe_.data_parallel - 1);
  const Tensor* tensors[] = {&tensor};
  tape_.append(op, kind == CollectiveKind::all_gather ? "ncclAllGather" : "ncclReduceScatter", tensors, tensors);
}

// The norm of all gradients, one AdamW kernel per tensor, and the parameters gathered again.
void NativeStep::update() {
  tape_.phase = Phase::optimizer;
  std::vector<const Tensor*> layers;
  for (const Tensor& g : layer_gradients_) layers.push_back(&g);
  const auto launch = [&](TapeKernel work, const NativeWeight& w, std::vector<const Tensor*> reads,
                          std::vector<const Tensor*> writes) {
    if (w.gradient)
      reads.push_back(&w.gradient);
    else
      reads.insert(reads.end(), layers.begin(), layers.end());
    work.type = DataType::bf16;
    tape_.kernel(work, reads, writes);
  };
  for (const NativeWeight& w : weights_) {
    const std::int64_t n = w.master.elements();
    launch({"global_norm_squared", OperatorClass::reduction, DataType::bf16, 2 * static_cast<double>(n), {1, n}, 2 * n},
           w, {}, {&norm_});
  }
  Op wait;
  wait.kind = OpKind::synchronize;
  wait.wait_for = WaitFor::device;
  tape_.append(wait, "cudaDeviceSynchronize", {}, {});
  for (const NativeWeight& w : weights_) {
    const std::int64_t n = w.master.elements();
    launch({"adamw_update",
            OperatorClass::optimizer,
            DataType::bf16,
            16 * static_cast<double>(n),
            {n},
            (2 + 12 + 12 + 2) * n},
           w, {&w.master, &w.first, &w.second}, {&w.value, &w.master, &w.first, &w.second});
    if (recipe_.data_parallel == 1) continue;
    hand_over(0, nccl_);
    collective(CollectiveKind::all_gather, w.value.bytes(), w.value);
  }
  if (recipe_.data_parallel > 1) hand_over(nccl_, 0);
  tape_.append(wait, "cudaDeviceSynchronize", {}, {});
}

Trace NativeStep::run() {
  tape_.begin_step(model_.name);
  for (std::int64_t i = 0; i < recipe_.accumulation; ++i) {
    forward();
    backward(i == 0, i + 1 == recipe_.accumulation);
  }
  update();
  Trace trace = std::move(tape_).finish();
  trace.ranks = recipe_.data_parallel;
  return trace;
}

}  // namespace memwall
