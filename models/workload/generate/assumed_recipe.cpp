#include "models/workload/generate/assumed_recipe.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "models/workload/generate/configuration/model_size.h"
#include "sim/number_text.h"

namespace memwall {
namespace {

const char* name_of(Precision precision) {
  constexpr const char* kNames[] = {"fp32", "amp_fp16", "amp_bf16", "fp16", "bf16", "fp8", "fp8_transformer_engine"};
  return kNames[static_cast<std::size_t>(precision)];
}

const char* words_of(Precision precision) {
  constexpr const char* kWords[] = {
      "fp32",      "autocast to fp16, parameters fp32",        "autocast to bf16, parameters fp32",         "pure fp16",
      "pure bf16", "fp8 in linear layers, the rest pure bf16", "fp8 in linear layers by Transformer Engine"};
  return kWords[static_cast<std::size_t>(precision)];
}

RecipeItem precision_of(const Recipe& r) {
  const char* const master = has_master_parameters(r) ? ", main parameters fp32 in the optimizer" : "";
  RecipeItem item{
      "precision", fmt::format("{}{}", words_of(r.precision), master),
      fmt::format("precision={}{}", name_of(r.precision), has_master_parameters(r) ? ",master_parameters=true" : "")};
  if (r.precision != Precision::fp8_transformer_engine) return item;
  const bool delayed = r.fp8_recipe == Fp8Recipe::delayed;
  item.value += delayed ? ", scales of passes before" : ", scales of each tensor";
  item.setting += delayed ? ",fp8_recipe=delayed" : ",fp8_recipe=tensorwise";
  if (r.fp8_parameters) item.value += ", parameters in fp8", item.setting += ",fp8_parameters=true";
  if (!r.fp8_weight_cache) item.value += ", weights cast in each pass", item.setting += ",fp8_weight_cache=false";
  return item;
}

RecipeItem optimizer_of(const Recipe& r) {
  constexpr const char* kNames[] = {"none", "sgd", "adam", "adamw", "adamw_8bit"};
  constexpr const char* kWords[] = {"no optimizer", "SGD", "Adam", "AdamW", "8-bit AdamW"};
  const auto kind = static_cast<std::size_t>(r.optimizer);
  RecipeItem item{"optimizer", kWords[kind], fmt::format("optimizer={}", kNames[kind])};
  const bool kernels =
      r.optimizer == OptimizerKind::sgd || r.optimizer == OptimizerKind::adam || r.optimizer == OptimizerKind::adamw;
  if (!kernels || r.execution == ExecutionMode::native) return item;
  constexpr const char* kKernels[] = {"foreach", "fused", "foreach_with_copies"};
  constexpr const char* kKernelWords[] = {"foreach", "fused", "PyTorch 2.0's foreach"};
  const auto kernels_of = static_cast<std::size_t>(r.optimizer_kernels);
  item.value = fmt::format("{} {}", kKernelWords[kernels_of], item.value);
  item.setting += fmt::format(",optimizer_kernels={}", kKernels[kernels_of]);
  return item;
}

RecipeItem attention_of(const Recipe& r) {
  // In the order of Attention: the words, and the setting's value.
  constexpr std::pair<std::string_view, std::string_view> kAttention[] = {
      {"plain attention", "plain"},
      {"flash attention", "flash"},
      {"FlashAttention-1", "flash1"},
      {"FlashAttention-3", "flash3"},
      {"FlashAttention-4", "flash4"},
      {"cuDNN's attention", "cudnn"},
      {"memory-efficient attention", "memory_efficient"},
      {"flash attention in Triton", "triton"}};
  // The native program (llm.c) calls cuDNN's, whatever is asked for.
  const Attention attention = r.execution == ExecutionMode::native ? Attention::cudnn : r.attention;
  const auto& [words, value] = kAttention[static_cast<std::size_t>(attention)];
  return {"attention", std::string(words), fmt::format("attention={}", value)};
}

RecipeItem checkpoint_of(const Recipe& r) {
  constexpr const char* kNames[] = {"none", "full", "selective"};
  constexpr const char* kWords[] = {"no checkpointing", "each layer checkpointed", "attention checkpointed"};
  const auto which = static_cast<std::size_t>(r.checkpoint);
  return {"checkpoint", kWords[which], fmt::format("checkpoint={}", kNames[which])};
}

RecipeItem execution_of(const Recipe& r) {
  constexpr const char* kNames[] = {"eager", "compiled", "native"};
  constexpr const char* kWords[] = {"eager", "compiled layers", "native program"};
  const auto mode = static_cast<std::size_t>(r.execution);
  return {"execution", kWords[mode], fmt::format("execution={}", kNames[mode])};
}

RecipeItem batch_of(const Model& m, const Recipe& r) {
  const std::int64_t sequence = r.sequence != 0 ? r.sequence : m.longest;
  RecipeItem item{"batch", "", fmt::format("batch={}", r.batch)};
  if (has_words(m)) {
    item.value = fmt::format("{} x {} tokens", r.batch, sequence);
    item.setting += fmt::format(",sequence={}", sequence);
  } else {
    item.value = fmt::format("{} image{} of {} x {}", r.batch, r.batch == 1 ? "" : "s", m.image, m.image);
    item.setting += fmt::format(",image={}", m.image);
  }
  if (r.accumulation > 1) {
    item.value += fmt::format(", {} times per step", r.accumulation);
    item.setting += fmt::format(",accumulation={}", r.accumulation);
  }
  return item;
}

std::string count_text(std::int64_t parameters) {
  constexpr std::array kUnits{ScaledUnit{1e3, "thousand"}, ScaledUnit{1e6, "million"}, ScaledUnit{1e9, "billion"},
                              ScaledUnit{1e12, "trillion"}};
  return scaled_text(static_cast<double>(parameters), kUnits, 4);
}

// ", 46.70 billion parameters, of which a token meets 12.88 billion"
std::string parameters_of(const Model& m) {
  const std::int64_t all = parameter_count(m), active = active_parameter_count(m);
  return fmt::format(", {} parameters{}", count_text(all),
                     active == all ? "" : fmt::format(", of which a token meets {}", count_text(active)));
}

RecipeItem network_of(const Model& m) {
  if (!is_convolutional(m))
    return {"network", fmt::format("{} layers of {}{}", m.layers, m.width, parameters_of(m)),
            fmt::format("layers={},width={}", m.layers, m.width)};
  const bool resnet = m.architecture == Architecture::resnet;
  const std::vector<std::int64_t>& list = resnet ? m.blocks : m.channels;
  return {"network", fmt::format("{} {}{}", resnet ? "blocks" : "channels", fmt::join(list, " "), parameters_of(m)),
          fmt::format("{}={}", resnet ? "blocks" : "channels", fmt::join(list, ","))};
}

// Who issues a divided model's program, and what becomes of its gradients and parameters between data-parallel ranks.
void add_framework(const ModelParallel& p, std::vector<RecipeItem>& items) {
  constexpr std::pair<std::string_view, std::string_view> kFrameworks[] = {
      {"Megatron-core", "megatron"}, {"DeepSpeed's pipeline", "deepspeed"}, {"torchtitan", "torchtitan"}};
  const auto& [words, value] = kFrameworks[static_cast<std::size_t>(p.framework)];
  RecipeItem item{"framework", std::string(words), fmt::format("parallel_framework={}", value)};
  const auto add = [&item](bool on, std::string_view said, std::string_view setting) {
    if (!on) return;
    item.value += fmt::format(", {}", said);
    item.setting += fmt::format(",{}=true", setting);
  };
  add(p.distributed_optimizer, "main parameters and moments divided over data-parallel ranks", "distributed_optimizer");
  add(p.overlap_grad_reduce, "gradients reduced beside backward", "overlap_grad_reduce");
  add(p.overlap_param_gather, "parameters gathered beside forward", "overlap_param_gather");
  items.push_back(std::move(item));
}

// How the model is divided over ranks; nothing where it is not.
void add_layout(const Recipe& r, std::vector<RecipeItem>& items) {
  const ModelParallel& p = r.parallel;
  if (p.tensor * p.pipeline == 1) return;
  RecipeItem item{"layout", "",
                  fmt::format("tensor={},pipeline={},data_parallel={}", p.tensor, p.pipeline, r.data_parallel)};
  item.value = fmt::format("{} tensor- x {} pipeline- x {} data-parallel ranks", p.tensor, p.pipeline, r.data_parallel);
  if (p.interleave > 1) {
    item.value += fmt::format(" with {} chunks of layers each", p.interleave);
    item.setting += fmt::format(",interleave={}", p.interleave);
  }
  if (p.sequence_parallel) {
    item.value += ", sequence parallelism";
    item.setting += ",sequence_parallel=true";
  }
  if (p.tp_comm_overlap) {
    item.value += ", messages beside their products";
    item.setting += ",tp_comm_overlap=true";
  }
  if (p.async_tensor_parallel) {
    item.value += ", async tensor parallelism";
    item.setting += ",async_tensor_parallel=true";
  }
  items.push_back(std::move(item));
  add_framework(p, items);
}

void add_extraordinary(const Recipe& r, std::vector<RecipeItem>& items) {
  if (r.fused_kernels) items.push_back({"kernels", "Megatron-LM's fused kernels", "fused_kernels=true"});
  if (r.lora_rank != 0)
    items.push_back({"lora", fmt::format("LoRA of rank {}", r.lora_rank), fmt::format("lora_rank={}", r.lora_rank)});
  if (r.lora_targets == LoraTargets::query_key_value)
    items.push_back({"lora_targets", "pairs beside queries, keys and values alone", "lora_targets=query_key_value"});
  if (r.lora_dropout != 0)
    items.push_back({"lora_dropout", fmt::format("dropout of {} before each pair", r.lora_dropout),
                     fmt::format("lora_dropout={}", r.lora_dropout)});
  if (r.paged_optimizer) items.push_back({"optimizer_states", "states in pages on the host", "paged_optimizer=true"});
  if (r.embedding_states_in_fp32)
    items.push_back({"embedding_states", "the embedding's states in fp32", "embedding_states_in_fp32=true"});
  if (r.lora_in_fp32) items.push_back({"lora_type", "LoRA's pairs in fp32 under autocast", "lora_in_fp32=true"});
  if (r.liger_kernels) items.push_back({"kernels", "Liger's kernels", "liger_kernels=true"});
  if (r.returned_logits != ReturnedLogits::none) {
    const char* const until = r.returned_logits == ReturnedLogits::forward ? "forward" : "backward";
    items.push_back({"logits", fmt::format("logits returned, kept until {} is over", until),
                     fmt::format("returned_logits={}", until)});
  }
  if (r.shifted_logits) items.push_back({"shift", "logits shifted by the model", "shifted_logits=true"});
  if (r.synchronizing_attention)
    items.push_back({"waits", "the host waits in each layer's attention", "synchronizing_attention=true"});
  if (r.weights_in_nf4) items.push_back({"weights", "frozen weights in NF4", "weights_in_nf4=true"});
  if (r.trained_embeddings)
    items.push_back({"embeddings", "word embedding and output layer trained", "trained_embeddings=true"});
  if (r.weights_in_gptq) items.push_back({"weights", "frozen weights in GPTQ of four bits", "weights_in_gptq=true"});
  if (r.tile_factor != 0)
    items.push_back({"tiles", fmt::format("linear layers in tiles of 1/{} of the width", r.tile_factor),
                     fmt::format("tile_factor={}", r.tile_factor)});
  if (r.activation_offload)
    items.push_back({"activation_offload", "activations offloaded to the host", "activation_offload=true"});
  if (r.fused_linear_loss) items.push_back({"loss", "Liger's fused linear loss", "fused_linear_loss=true"});
  if (r.loss_chunks > 1)
    items.push_back(
        {"loss", fmt::format("loss in {} pieces", r.loss_chunks), fmt::format("loss_chunks={}", r.loss_chunks)});
  if (r.data_parallel > 1 && r.parallel.tensor * r.parallel.pipeline == 1)  // else in the layout
    items.push_back({"data_parallel", fmt::format("gradients reduced over {} ranks", r.data_parallel),
                     fmt::format("data_parallel={}", r.data_parallel)});
}

}  // namespace

std::vector<RecipeItem> assumed_recipe(const Model& model, const Recipe& recipe) {
  std::vector<RecipeItem> items{precision_of(recipe), optimizer_of(recipe)};
  if (!is_convolutional(model)) {
    items.push_back(attention_of(recipe));
    items.push_back(checkpoint_of(recipe));
  }
  items.push_back(execution_of(recipe));
  items.push_back(batch_of(model, recipe));
  items.push_back(network_of(model));
  add_layout(recipe, items);
  add_extraordinary(recipe, items);
  return items;
}

}  // namespace memwall
