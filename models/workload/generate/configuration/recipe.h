// How a network is trained: batch, precision, optimizer, and what the program around it does.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "models/workload/generate/configuration/model_parallel.h"

namespace memwall {

enum class Precision : std::uint8_t {
  fp32,
  amp_fp16,  // parameters fp32, torch.autocast; gradients scaled and checked for infinities
  amp_bf16,
  fp16,  // parameters fp16 (Megatron: with fp32 main parameters in the optimizer)
  bf16,  // pure: parameters, gradients and optimizer states
  fp8,   // linear layers but the output layer in fp8 (torchao's Float8Linear, dynamic scales), the rest bf16
  fp8_transformer_engine  // likewise, by Transformer Engine (operators/operators_transformer_engine.h)
};

// How Transformer Engine finds the scale of a tensor (transformer_engine/common/recipe, Megatron-LM's --fp8-recipe):
// from the largest magnitudes of passes before (DelayedScaling), or of this tensor (Float8CurrentScaling). One scale
// for a tensor either way; E4M3 forward, E5M2 backward, a byte each.
enum class Fp8Recipe : std::uint8_t { delayed, tensorwise };

// flash: FlashAttention-2, as PyTorch has it.
enum class Attention : std::uint8_t { plain, flash, flash1, flash3, flash4, cudnn, memory_efficient, triton };

enum class OptimizerKind : std::uint8_t { none, sgd, adam, adamw, adamw_8bit };
// foreach_with_copies: lists as PyTorch 2.0 has them (torch/optim/adamw.py), where Adam's denominator is a list beside
// the roots that it is made from.
enum class OptimizerKernels : std::uint8_t { foreach, fused, foreach_with_copies };

enum class ExecutionMode : std::uint8_t { eager, compiled, native };  // native: one program in C++ (llm.c)

// selective: of attention between its products alone (Megatron-LM's recompute_granularity selective, core_attn).
enum class ActivationCheckpoint : std::uint8_t { none, full, selective };

// How long the logits live that a model returns beside its loss (Transformers): not at all; until forward is over (its
// Trainer, which returns the loss alone); until backward is over (a program with `output = model(...)`).
enum class ReturnedLogits : std::uint8_t { none, forward, backward };

// Beside which products LoRA's pairs stand: all that are named at lora_rank; the product that gives queries, keys and
// values (of three those of queries and values; Megatron-Bridge's target_modules ["linear_qkv"]).
enum class LoraTargets : std::uint8_t { all, query_key_value };

enum class ReductionSchedule : std::uint8_t {
  overlapped,     // PyTorch's DistributedDataParallel: buckets of 25 MiB, reduced as they fill, beside backward
  after_backward  // all gradients in one buffer at the end of backward (Megatron-LM's local data parallelism)
};

struct Recipe {
  std::int64_t batch = 1;     // sequences or images of one forward pass, on one GPU
  std::int64_t sequence = 0;  // tokens; 0: the model's longest
  Precision precision = Precision::bf16;
  Fp8Recipe fp8_recipe = Fp8Recipe::delayed;  // of fp8_transformer_engine
  // Weights of layers are parameters in fp8, without a copy in bf16 (Megatron-LM's --fp8-param-gather).
  bool fp8_parameters = false;
  // Weights in fp8 are made once in a step and kept, transposed too; else anew in each pass (Megatron-core's
  // disable_parameter_transpose_cache).
  bool fp8_weight_cache = true;
  Attention attention = Attention::flash;
  ExecutionMode execution = ExecutionMode::eager;
  OptimizerKind optimizer = OptimizerKind::adamw;
  OptimizerKernels optimizer_kernels = OptimizerKernels::foreach;
  bool optimizer_in_backward = false;
  // States of 100,000 elements and more lie in unified memory (bitsandbytes' PagedAdamW8bit) where the GPU has no room
  // left for them: each update moves them there and back.
  bool paged_optimizer = false;
  bool embedding_states_in_fp32 = false;  // of 8-bit AdamW, as Transformers' Trainer asks for
  std::int64_t accumulation = 1;   // forward and backward passes per update
  // fp32 copies in the optimizer where parameters are 16-bit. Not said: not those of an undivided job; see
  // has_master_parameters().
  std::optional<bool> master_parameters;
  std::int64_t loss_chunks = 1;    // chunked cross entropy: pieces of the sequence
  bool compiled_loss = true;       // with compiled execution the loss is compiled too (torchtune: only a chunked one)
  bool loss_in_fp32 = true;        // logits are cast up before the loss
  // Liger's loss, which never holds all logits: output layer and cross entropy in pieces, gradients made in forward.
  bool fused_linear_loss = false;
  // Beside the loss the model returns its logits; under autocast in fp32 (accelerate's convert_outputs_to_fp32).
  ReturnedLogits returned_logits = ReturnedLogits::none;
  bool shifted_logits = false;  // the model shifts targets itself: logits but those of the last token (Transformers)
  // Liger's normalization, rotation and SwiGLU, which write gradients over what they read.
  bool liger_kernels = false;
  // Each layer's attention asks on the host whether its positions are packed (Transformers, FlashAttention, a batch of
  // one), which waits for the GPU.
  bool synchronizing_attention = false;
  ActivationCheckpoint checkpoint = ActivationCheckpoint::none;  // of each layer
  bool activation_offload = false;
  // 0: all parameters are trained. Otherwise pairs of that rank beside Q, V (or the joint product), attention's output
  // and the MLP, as torchtune's configurations have it; nothing else is trained.
  std::int64_t lora_rank = 0;
  LoraTargets lora_targets = LoraTargets::all;
  // The pairs are fp32 beside 16-bit weights, what goes into them is cast up, and the program runs under autocast to the
  // weights' type (PEFT before 0.6, and since 0.12 with autocast_adapter_dtype).
  bool lora_in_fp32 = false;
  double lora_dropout = 0;  // of what goes into a pair, each its own (PEFT's lora_dropout); less than 1
  // With LoRA: weights of linear layers but the output layer's are kept in NF4 and made 16-bit in each use (QLoRA,
  // bitsandbytes' Linear4bit).
  bool weights_in_nf4 = false;
  // Likewise by GPTQ, in groups of 128, unpacked by PyTorch's operators in each use (AutoGPTQ without ExLlama).
  bool weights_in_gptq = false;
  // With LoRA: word embedding and output layer are trained, too, as copies of the frozen ones (PEFT's modules_to_save).
  bool trained_embeddings = false;
  // 0: each linear layer is one product. Otherwise those of layers are TiledLinear of DeepSpeed, grids of tiles of
  // [width / tile_factor, width / tile_factor], each a module with a weight of its own (Megatron-DeepSpeed's
  // --memory-centric-tiled-linear --tile-factor).
  std::int64_t tile_factor = 0;
  std::uint32_t data_parallel = 1;  // ranks; the gradients are reduced over them
  ReductionSchedule gradient_reduction = ReductionSchedule::overlapped;
  bool gradients_as_bucket_views = false;  // gradient_as_bucket_view: gradients lie in the buckets
  bool set_to_none = true;                 // zero_grad frees the gradients
  // Megatron-LM's kernels: scale, mask and softmax; bias and GELU; bias, dropout and sum; a cross entropy in place.
  bool fused_kernels = false;
  // The engine adds to a gradient that nobody else holds. It does not where tensors are of a subclass: captures on
  // fake tensors show a new tensor for each sum.
  bool sums_in_place = true;
  // CUDA_LAUNCH_BLOCKING=1: a call that launches something returns when that has run.
  bool launch_blocking = false;
  ModelParallel parallel;
};

inline bool has_master_parameters(const Recipe& r) { return r.master_parameters.value_or(false); }

}  // namespace memwall
