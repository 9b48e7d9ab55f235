// The operators that models are made of, written on a tape as PyTorch's dispatcher runs them: the same names, the
// same kernels, the same saved tensors, the same backward. FLOPs and bytes are counted as memwall_capture does
// (traces/capture/memwall_capture/operators.py), so that generated and captured steps can be compared.
#pragma once

#include <initializer_list>
#include <span>
#include <string_view>

#include "models/workload/generate/operators/tape.h"
#include "sim/trace/attention_kernel.h"

namespace memwall {

// --- views: no kernel
Tensor transpose(Tape& tape, const Tensor& x, int a, int b);
Tensor narrow(Tape& tape, const Tensor& x, int dimension, std::int64_t first, std::int64_t size);
Tensor expand(Tape& tape, const Tensor& x, const Shape& shape);
// A view if the strides allow it, otherwise a copy (aten::clone).
Tensor reshape(Tape& tape, const Tensor& x, const Shape& shape);
// Equal parts (Tensor.chunk, Tensor.split); their gradients come back by one aten::cat.
Tensors split(Tape& tape, const Tensor& x, int dimension, std::span<const std::int64_t> sizes);
Tensors chunk(Tape& tape, const Tensor& x, int dimension, int parts);
Tensor select(Tape& tape, const Tensor& x, int dimension);  // one index of the dimension, which vanishes

// --- memory
Tensor fill(Tape& tape, std::string_view name, const Shape& shape, DataType type);  // zeros, ones, arange, ...
Tensor cast(Tape& tape, const Tensor& x, DataType type);                            // x itself if it has that type
Tensor copy_of(Tape& tape, const Tensor& x, std::string_view name = "aten::clone");
Tensor contiguous(Tape& tape, const Tensor& x);
// Tensor.item(): a number is copied to the host, which waits for it.
void read_on_host(Tape& tape, const Tensor& number);
Tensor cat(Tape& tape, std::span<const Tensor> parts, int dimension);
// One kernel that writes `to`, a part of a buffer or a gradient; nothing is recorded for backward.
void kernel_into(Tape& tape, std::string_view name, OperatorClass operator_class,
                 std::initializer_list<const Tensor*> reads, const Tensor& to);
// What autocast makes of an operator's input: cast to its type; casts of parameters are kept until it ends.
Tensor autocast_to(Tape& tape, const Tensor& x, DataType type);
Tensor autocast_low(Tape& tape, const Tensor& x);   // of an operator that runs in the low type
Tensor autocast_fp32(Tape& tape, const Tensor& x);  // of one that runs in fp32

// --- elementwise; shapes broadcast, the wider type wins
Tensor add(Tape& tape, const Tensor& a, const Tensor& b);
Tensor sub(Tape& tape, const Tensor& a, const Tensor& b);
Tensor mul(Tape& tape, const Tensor& a, const Tensor& b);
void add_in_place(Tape& tape, const Tensor& a, const Tensor& b);
// With a number: aten::add, aten::mul, aten::div ... no history beyond the gradient's own scaling.
Tensor add_number(Tape& tape, const Tensor& x);
Tensor mul_number(Tape& tape, const Tensor& x);
Tensor div_number(Tape& tape, const Tensor& x);
Tensor neg(Tape& tape, const Tensor& x);
Tensor masked_fill(Tape& tape, const Tensor& x, const Tensor& mask);  // with a number where the mask says so
Tensor square(Tape& tape, const Tensor& x);                           // x.pow(2)
Tensor rsqrt(Tape& tape, const Tensor& x);
Tensor silu(Tape& tape, const Tensor& x);
Tensor gelu(Tape& tape, const Tensor& x);
Tensor relu(Tape& tape, const Tensor& x);
Tensor tanh(Tape& tape, const Tensor& x);
// x * 0.5 * (1 + tanh(c (x + a x^3))), operator by operator (Hugging Face's NewGELUActivation).
Tensor gelu_tanh_in_parts(Tape& tape, const Tensor& x);
// The same by a function of its own, whose backward computes all of it again from x (BLOOM's GeLUFunction).
Tensor gelu_tanh_recomputed(Tape& tape, const Tensor& x);
Tensor dropout(Tape& tape, const Tensor& x, double probability);  // x itself if 0
// c tanh(x / c), operator by operator.
Tensor softcapped(Tape& tape, Tensor x);
// One elementwise kernel without history.
Tensor elementwise(Tape& tape, std::string_view name, std::initializer_list<const Tensor*> reads, const Shape& shape,
                   DataType type);

// --- reductions
Tensor sum_to(Tape& tape, const Tensor& x, const Shape& shape);  // undoes a broadcast; no history
Tensor mean_of_rows(Tape& tape, const Tensor& x);                // over the last dimension, which stays as 1
Tensor softmax(Tape& tape, const Tensor& x);
Tensor log_softmax(Tape& tape, const Tensor& x);

// --- products
Tensor linear(Tape& tape, const Tensor& x, const Tensor& weight, const Tensor& bias = {});
Tensor bmm(Tape& tape, const Tensor& a, const Tensor& b);
// torch.matmul of [batch, heads, m, k] and [batch, heads, k, n].
Tensor batched_matmul(Tape& tape, const Tensor& a, const Tensor& b);
// scaled_dot_product_attention, FlashAttention's kernels; q, k, v: [batch, heads, length, size].
Tensor fused_attention(Tape& tape, const Tensor& q, const Tensor& k, const Tensor& v, bool causal,
                       AttentionKernel kernel);

// --- normalization
Tensor layer_norm(Tape& tape, const Tensor& x, const Tensor& weight, const Tensor& bias);
Tensor rms_norm(Tape& tape, const Tensor& x, const Tensor& weight);           // one operator
Tensor rms_norm_in_parts(Tape& tape, const Tensor& x, const Tensor& weight);  // in fp32, seven operators
Tensor rms_norm_in_fp32(Tape& tape, const Tensor& x, const Tensor& weight);   // cast behind the weight
Tensor rms_norm_zero_centered(Tape& tape, const Tensor& x, const Tensor& weight);  // by 1 + weight in fp32, then cast

// --- words and losses
Tensor embedding(Tape& tape, const Tensor& weight, const Tensor& words);
// Mean of the cross entropies of rows of `logits` with `targets`: aten::_log_softmax, aten::nll_loss_forward.
Tensor cross_entropy(Tape& tape, const Tensor& logits, const Tensor& targets);

}  // namespace memwall
