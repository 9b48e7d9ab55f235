#include "models/workload/generate/generate.h"

#include <fmt/format.h>

#include "models/workload/generate/assumed_recipe.h"
#include "models/workload/generate/configuration/model_size.h"
#include "models/workload/generate/configuration/module_structure.h"
#include "models/workload/generate/gradient_reduction.h"
#include "models/workload/generate/native/native_step.h"
#include "models/workload/generate/network.h"
#include "models/workload/generate/optimizer_step.h"
#include "models/workload/generate/parallel/parallel_job.h"
#include "models/workload/generate/parallel/parallel_step.h"
#include "models/workload/generate/training_step.h"
#include "sim/error.h"

namespace memwall {

DataType parameter_type(Precision precision) {
  switch (precision) {
    case Precision::fp16:
      return DataType::fp16;
    case Precision::bf16:
    case Precision::fp8:
    case Precision::fp8_transformer_engine:
      return DataType::bf16;
    default:
      return DataType::fp32;
  }
}

std::optional<DataType> autocast_type(const Recipe& recipe) {
  if (recipe.lora_in_fp32) return parameter_type(recipe.precision);
  if (recipe.precision == Precision::amp_fp16) return DataType::fp16;
  if (recipe.precision == Precision::amp_bf16) return DataType::bf16;
  return std::nullopt;
}

AttentionKernel attention_kernel(Attention attention) {
  switch (attention) {
    case Attention::plain:
    case Attention::flash:
      break;
    case Attention::flash1:
      return AttentionKernel::flash_attention_1;
    case Attention::flash3:
      return AttentionKernel::flash_attention_3;
    case Attention::flash4:
      return AttentionKernel::flash_attention_4;
    case Attention::cudnn:
      return AttentionKernel::cudnn;
    case Attention::memory_efficient:
      return AttentionKernel::memory_efficient;
    case Attention::triton:
      return AttentionKernel::triton;
  }
  return AttentionKernel::flash_attention_2;
}

std::unique_ptr<Network> make_network(Tape& tape, const Model& model, const Recipe& recipe) {
  return is_convolutional(model) ? make_convolutional_network(tape, model, recipe)
                                 : make_transformer(tape, model, recipe);
}

namespace {

// Of one rank.
void count_samples(const Model& model, const Recipe& recipe, Trace& trace) {
  trace.samples_per_step = static_cast<double>(recipe.batch) * static_cast<double>(recipe.accumulation);
  if (has_words(model))
    trace.tokens_per_step =
        trace.samples_per_step * static_cast<double>(recipe.sequence ? recipe.sequence : model.longest);
}

void refuse(bool refused, const char* setting, const char* with) {
  if (refused) throw UsageError(fmt::format("`{}` is not implemented {}.", setting, with));
}

// Number formats: of products, and of the optimizer's states.
void require_precision(const Model& model, const Recipe& recipe) {
  const bool engine = recipe.precision == Precision::fp8_transformer_engine;
  refuse(recipe.precision == Precision::fp8 && (is_convolutional(model) || recipe.execution == ExecutionMode::native ||
                                                recipe.fused_kernels || recipe.lora_rank != 0 || model.experts != 0),
         "precision: fp8", "but for transformers, eager or compiled, without fused_kernels, LoRA and experts");
  refuse(engine && (is_convolutional(model) || recipe.execution != ExecutionMode::eager || recipe.fused_kernels ||
                    model.experts != 0 || recipe.tile_factor != 0 || recipe.weights_in_nf4 || recipe.weights_in_gptq ||
                    recipe.activation_offload),
         "precision: fp8_transformer_engine",
         "but for transformers run eagerly, without fused_kernels, experts, tile_factor, weights_in_nf4, "
         "weights_in_gptq and activation_offload");
  refuse(!engine && (recipe.fp8_recipe != Fp8Recipe::delayed || recipe.fp8_parameters || !recipe.fp8_weight_cache),
         "fp8_recipe, fp8_parameters or fp8_weight_cache", "but for precision: fp8_transformer_engine");
  refuse(recipe.fp8_parameters && recipe.lora_rank == 0 && !is_parallel(recipe), "fp8_parameters",
         "where gradients add up in no buffer (Megatron-LM's main_gradients)");
  refuse((recipe.paged_optimizer || recipe.embedding_states_in_fp32) && recipe.optimizer != OptimizerKind::adamw_8bit,
         "paged_optimizer or embedding_states_in_fp32", "but for optimizer: adamw_8bit");
}

// LoRA, and weights that are frozen in fewer bits beside it.
void require_lora(const Model& model, const Recipe& recipe) {
  const bool decoder = model.architecture == Architecture::decoder;
  refuse(
      recipe.lora_rank != 0 && (!has_words(model) || recipe.execution == ExecutionMode::native || recipe.fused_kernels),
      "lora_rank", "but for transformers of words, eager or compiled, without fused_kernels");
  refuse(recipe.lora_rank != 0 && recipe.execution == ExecutionMode::compiled &&
             (recipe.lora_dropout != 0 || recipe.weights_in_gptq),
         "lora_rank in compiled layers", "with lora_dropout or weights_in_gptq");
  refuse(recipe.lora_in_fp32 && (recipe.lora_rank == 0 || recipe.execution != ExecutionMode::eager ||
                                 (recipe.precision != Precision::fp16 && recipe.precision != Precision::bf16)),
         "lora_in_fp32", "but for LoRA (lora_rank) beside weights in fp16 or bf16, run eagerly");
  refuse(recipe.lora_dropout != 0 && recipe.lora_rank == 0, "lora_dropout", "without LoRA (lora_rank)");
  refuse(recipe.lora_targets != LoraTargets::all && recipe.lora_rank == 0, "lora_targets", "without LoRA (lora_rank)");
  refuse(recipe.weights_in_nf4 && recipe.lora_rank == 0, "weights_in_nf4", "without LoRA (lora_rank)");
  refuse(recipe.weights_in_nf4 && (autocast_type(recipe) || model.experts != 0), "weights_in_nf4",
         "with autocast or experts");
  refuse(recipe.weights_in_nf4 && (model.bias || model.query_key_value_bias), "weights_in_nf4",
         "where linear layers have biases");
  refuse(recipe.weights_in_gptq && (recipe.lora_rank == 0 || recipe.weights_in_nf4), "weights_in_gptq",
         "without LoRA (lora_rank), or beside weights_in_nf4");
  refuse(recipe.weights_in_gptq && (recipe.precision != Precision::fp16 || model.experts != 0 || !decoder),
         "weights_in_gptq", "but for decoders in fp16, without experts");
  refuse(recipe.trained_embeddings && (recipe.lora_rank == 0 || !decoder), "trained_embeddings",
         "but for decoders with LoRA (lora_rank)");
}

// Kernels and losses that only some layers have.
void require_kernels_and_loss(const Model& model, const Recipe& recipe) {
  const bool decoder = model.architecture == Architecture::decoder;
  refuse(recipe.liger_kernels &&
             (!decoder || model.normalization == Normalization::layer_norm ||
              model.activation != Activation::swiglu || model.positions != Positions::rotary || model.rotary_in_fp32 ||
              model.experts != 0 || recipe.execution != ExecutionMode::eager || autocast_type(recipe)),
         "liger_kernels", "but for Llama's layers (RMSNorm, rotation by halves, SwiGLU), run eagerly without autocast");
  refuse(recipe.synchronizing_attention && (!decoder || recipe.execution != ExecutionMode::eager ||
                                            recipe.attention == Attention::plain || model.rotary_in_fp32),
         "synchronizing_attention", "but for decoders with fused attention, run eagerly");
  refuse((recipe.returned_logits != ReturnedLogits::none || recipe.shifted_logits) &&
             (!decoder || recipe.execution == ExecutionMode::native || recipe.fused_linear_loss ||
              recipe.loss_chunks > 1 || recipe.fused_kernels),
         "returned_logits or shifted_logits",
         "but for decoders whose loss is in one piece, without fused_linear_loss and fused_kernels");
  refuse(recipe.fused_linear_loss && (!decoder || autocast_type(recipe) || recipe.fused_kernels ||
                                      recipe.loss_chunks > 1 || recipe.execution == ExecutionMode::native),
         "fused_linear_loss", "but for decoders without autocast, fused_kernels and loss_chunks");
  refuse(recipe.tile_factor != 0 && (!decoder || recipe.execution != ExecutionMode::eager || recipe.fused_kernels ||
                                     recipe.lora_rank != 0 || recipe.precision == Precision::fp8 || model.experts != 0),
         "tile_factor", "but for decoders, run eagerly, without fused_kernels, LoRA, fp8 and experts");
  refuse(recipe.activation_offload && !decoder, "activation_offload", "but for decoders");
  refuse(recipe.loss_chunks > 1 && !decoder, "loss_chunks", "but for decoders");
  refuse(recipe.checkpoint != ActivationCheckpoint::none && is_convolutional(model), "checkpoint",
         "but for transformers");
  refuse(recipe.fused_kernels &&
             (!decoder || model.normalization != Normalization::layer_norm || !model.bias ||
              model.activation == Activation::swiglu || model.experts != 0 || autocast_type(recipe)),
         "fused_kernels", "but for GPT's layers (layer_norm, biases, gelu) without autocast");
  refuse(recipe.fused_kernels && recipe.execution != ExecutionMode::eager, "fused_kernels", "but for eager execution");
  refuse(recipe.parallel.cross_entropy_loss_fusion && !is_parallel(recipe), "cross_entropy_loss_fusion",
         "but for jobs of Megatron-LM");
  refuse(recipe.loss_chunks > 1 && recipe.loss_chunks > (recipe.sequence ? recipe.sequence : model.longest),
         "loss_chunks", "beyond one per token");
}

void require_compiled_layers(const Model& model, const Recipe& recipe) {
  if (recipe.execution != ExecutionMode::compiled) return;
  const char* const layers = "execution: compiled";
  refuse(model.architecture != Architecture::decoder, layers, "but for decoders");
  refuse(model.experts != 0, layers, "with experts");
  refuse(recipe.attention == Attention::plain, layers, "with plain attention");
  refuse(head_size(model) % 8 != 0, layers, "where the size of a head is no multiple of 8");
  refuse(model.query_key_norm, layers, "with query_key_norm");
  refuse(autocast_type(recipe).has_value(), layers, "with autocast (precision amp_bf16 or amp_fp16)");
}

// What a model's layers are made of.
void require_layers(const Model& model, const Recipe& recipe) {
  const bool decoder = model.architecture == Architecture::decoder;
  if (const std::string why = is_convolutional(model) ? "" : modules_wrong(model); !why.empty())
    throw UsageError(fmt::format("The model's layers: {}.", why));
  refuse(model.query_key_norm && (!decoder || model.rotary_in_fp32 || recipe.fused_kernels), "query_key_norm",
         "but for decoders, without rotary_in_fp32 and fused_kernels");
  refuse(model.architecture == Architecture::vision && model.experts != 0, "experts", "but for decoders");
  refuse(model.architecture == Architecture::encoder && model.experts != 0, "experts", "but for decoders");
  refuse(has_words(model) && model.positions == Positions::learned && recipe.sequence > model.longest, "sequence",
         "beyond the model's longest where positions are learned");
}

// Layers as transformers has them (Model::modules): what is another program's, or not yet written for them.
void require_modules(const Model& model, const Recipe& recipe) {
  if (is_convolutional(model) || model.modules == Modules::plain) return;
  const std::string layers = fmt::format("with modules: {}", to_string(model.modules));
  const char* const with = layers.c_str();
  refuse(recipe.execution != ExecutionMode::eager, "execution: compiled or native", with);
  refuse(recipe.fused_kernels, "fused_kernels", with);
  refuse(recipe.liger_kernels, "liger_kernels", with);
  refuse(recipe.tile_factor != 0, "tile_factor", with);
  refuse(recipe.precision == Precision::fp8_transformer_engine, "precision: fp8_transformer_engine", with);
  const bool alibi = model.positions == Positions::alibi;
  refuse(alibi && recipe.attention != Attention::plain, "attention but plain",
         fmt::format("{}, whose class has no other", layers).c_str());
  refuse(model.attention_softcapping && recipe.attention != Attention::plain && recipe.attention != Attention::flash &&
             recipe.attention != Attention::flash3,
         "attention_softcapping", "but for attention: plain, flash and flash3");
  refuse(recipe.fused_linear_loss && (model.logit_softcapping || model.output_bias), "fused_linear_loss",
         "with logit_softcapping or output_bias");
  refuse(recipe.loss_chunks > 1 && model.logit_softcapping, "loss_chunks", "with logit_softcapping");
}

void require_implemented(const Model& model, const Recipe& recipe) {
  require_precision(model, recipe);
  require_lora(model, recipe);
  require_kernels_and_loss(model, recipe);
  require_compiled_layers(model, recipe);
  require_layers(model, recipe);
  require_modules(model, recipe);
}

// The host waits for each kernel, copy and collective that it launches.
void block_launches(Trace& trace) {
  for (Op& op : trace.ops) {
    const bool launches = op.kind == OpKind::kernel || op.kind == OpKind::copy || op.kind == OpKind::memset ||
                          op.kind == OpKind::collective;
    if (launches && op.wait_for == WaitFor::nothing) op.wait_for = WaitFor::own_op;
  }
}

Trace unblocked_step(const Model& model, const Recipe& recipe) {
  if (is_parallel(recipe)) return parallel_step(model, recipe);
  refuse(recipe.parallel.framework != ParallelFramework::megatron && recipe.data_parallel > 1, "parallel_framework",
         "of data-parallel jobs without tensor or pipeline parallelism, which --policy fsdp, ddp and deepspeed are for");
  if (recipe.execution == ExecutionMode::native) {
    Trace trace = native_step(model, recipe);
    count_samples(model, recipe, trace);
    trace.recipe = assumed_recipe(model, recipe);
    return trace;
  }
  Tape tape(model.name);
  tape.sums_in_place = recipe.sums_in_place;
  const std::unique_ptr<Network> network = make_network(tape, model, recipe);
  make_optimizer_states(tape, recipe);
  GradientScaler scaler(tape, recipe);
  const bool buckets = recipe.data_parallel > 1 && recipe.gradient_reduction == ReductionSchedule::overlapped;
  GradientReduction reduction(tape, recipe, buckets ? gradient_order(model, recipe) : std::vector<std::size_t>());
  tape.begin_step(model.name);
  training_step(tape, *network, recipe, scaler, reduction);
  Trace trace = std::move(tape).finish();
  count_samples(model, recipe, trace);
  trace.recipe = assumed_recipe(model, recipe);
  return trace;
}

}  // namespace

Trace generate_step(const Model& model, const Recipe& given) {
  const Recipe recipe = with_passes(given);
  require_implemented(model, recipe);
  Trace trace = unblocked_step(model, recipe);
  if (recipe.launch_blocking) block_launches(trace);
  return trace;
}

}  // namespace memwall
