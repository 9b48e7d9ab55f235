#include "models/workload/generate/configuration/other_names.h"

#include <algorithm>
#include <string>

#include "sim/lower_case.h"

namespace memwall {
namespace {

// In the order of the settings.
constexpr std::pair<std::string_view, std::string_view> kNames[] = {
    {"num_layers", "layers"},
    {"n_layer", "layers"},
    {"n_layers", "layers"},
    {"num_hidden_layers", "layers"},
    {"depth", "layers"},
    {"hidden_size", "width"},
    {"hidden", "width"},
    {"d_model", "width"},
    {"dim", "width"},
    {"n_embd", "width"},
    {"num_heads", "heads"},
    {"n_head", "heads"},
    {"n_heads", "heads"},
    {"num_attention_heads", "heads"},
    {"num_key_value_heads", "key_value_heads"},
    {"n_kv_heads", "key_value_heads"},
    {"kv_heads", "key_value_heads"},
    {"num_query_groups", "key_value_heads"},
    {"head_dim", "head_size"},
    {"kv_channels", "head_size"},
    {"intermediate_size", "inner"},
    {"ffn_hidden_size", "inner"},
    {"ffn_dim", "inner"},
    {"hidden_dim", "inner"},
    {"vocab", "vocabulary"},
    {"vocab_size", "vocabulary"},
    {"num_experts", "experts"},
    {"num_local_experts", "experts"},
    {"top_k", "experts_per_token"},
    {"moe_router_topk", "experts_per_token"},
    {"num_experts_per_tok", "experts_per_token"},
    {"image_size", "image"},
    {"resolution", "image"},
    {"tie_word_embeddings", "tied_embedding"},
    {"bs", "batch"},
    {"batch_size", "batch"},
    {"local_batch_size", "batch"},
    {"per_device_train_batch_size", "batch"},
    {"mbs", "micro_batch"},
    {"micro_batch_size", "micro_batch"},
    {"train_micro_batch_size_per_gpu", "micro_batch"},
    {"gbs", "global_batch"},
    {"global_batch_size", "global_batch"},
    {"train_batch_size", "global_batch"},
    {"seqlen", "sequence"},
    {"seq_len", "sequence"},
    {"seq_length", "sequence"},
    {"sequence_length", "sequence"},
    {"max_seq_len", "sequence"},
    {"max_seq_length", "sequence"},
    {"context", "sequence"},
    {"context_length", "sequence"},
    {"block_size", "sequence"},
    {"ga", "accumulation"},
    {"grad_accum", "accumulation"},
    {"gradient_accumulation", "accumulation"},
    {"gradient_accumulation_steps", "accumulation"},
    {"dtype", "precision"},
    {"torch_dtype", "precision"},
    {"mixed_precision", "precision"},
    {"amp", "precision"},
    {"optim", "optimizer"},
    {"attn", "attention"},
    {"attn_implementation", "attention"},
    {"flash_attention", "attention"},
    {"checkpointing", "checkpoint"},
    {"activation_checkpoint", "checkpoint"},
    {"activation_checkpointing", "checkpoint"},
    {"gradient_checkpointing", "checkpoint"},
    {"recompute", "checkpoint"},
    {"recompute_granularity", "checkpoint"},
    {"torch_compile", "execution"},
    {"lora_r", "lora_rank"},
    {"tp", "tensor"},
    {"tensor_parallel", "tensor"},
    {"tensor_parallel_degree", "tensor"},
    {"tensor_parallel_size", "tensor"},
    {"tensor_model_parallel_size", "tensor"},
    {"pp", "pipeline"},
    {"pipeline_parallel", "pipeline"},
    {"pipeline_parallel_degree", "pipeline"},
    {"pipeline_parallel_size", "pipeline"},
    {"pipeline_model_parallel_size", "pipeline"},
    {"vp", "interleave"},
    {"vpp", "interleave"},
    {"dp", "data_parallel"},
    {"data_parallel_size", "data_parallel"},
    {"data_parallel_degree", "data_parallel"},
    {"sp", "sequence_parallel"},
    {"use_distributed_optimizer", "distributed_optimizer"},
};

}  // namespace

std::span<const std::pair<std::string_view, std::string_view>> other_names() { return kNames; }

std::string_view setting_called(std::string_view other_name) {
  std::string name = in_lower_case(std::string(other_name));
  std::replace(name.begin(), name.end(), '-', '_');
  const auto found = std::find_if(std::begin(kNames), std::end(kNames), [&](const auto& n) { return n.first == name; });
  return found == std::end(kNames) ? std::string_view() : found->second;
}

}  // namespace memwall
