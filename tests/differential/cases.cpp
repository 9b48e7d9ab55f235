#include "tests/differential/cases.h"

#include <algorithm>
#include <sstream>

namespace memwall {
namespace {

struct CaseText {
  const char* name;
  const char* policies;  // with a space between them
};

constexpr CaseText kCases[] = {
    {"full", "checkpoint:mode=full"},
    {"full_to_the_end", "checkpoint:mode=full,early_stop=0"},
    {"last_kept", "checkpoint:mode=full,last=keep"},
    {"every_two", "checkpoint:every=2"},
    {"every_three", "checkpoint:every=3"},
    {"square_root", "checkpoint:mode=sqrt"},
    {"first_two", "checkpoint:layers=2"},
    {"half", "checkpoint:fraction=0.5"},
    {"two_evenly", "checkpoint:layers=2,spread=even"},
    {"hidden", "checkpoint:mode=full,hides=1"},
    {"part", "checkpoint:modules={part}"},
    {"part_to_the_end", "checkpoint:modules={part},early_stop=0"},
    {"blocks_by_two", "checkpoint:modules={blocks},every=2"},
    {"full_drop_outputs", "checkpoint:mode=full,outputs=drop"},
    {"op", "checkpoint:ops={op}"},
    {"ops", "checkpoint:ops={ops}"},
    {"ops_keep_outputs", "checkpoint:ops={ops},outputs=keep"},
    {"save", "selective:save={save}"},
    {"save_other", "selective:save={other}"},
    {"save_two", "selective:save={save}+{other}"},
    {"save_to_the_end", "selective:save={save},early_stop=0"},
    {"save_last_kept", "selective:save={save},last=keep"},
    {"save_every_two", "selective:save={save},every=2"},
    {"save_in_part", "selective:save={save},modules={part}"},
    {"offload_at_use", "{offload},min_bytes=65536,prefetch=0"},
    {"offload", "{offload},min_bytes=65536,prefetch=1"},
    {"offload_four_ahead", "{offload},min_bytes=65536,prefetch=4"},
    {"offload_large", "{offload},min_bytes=8MiB"},
    {"offload_half", "{offload},min_bytes=65536,fraction=0.5"},
    {"offload_one_buffer", "{offload},min_bytes=65536,buffers=1"},
    {"offload_no_buffer", "{offload},min_bytes=65536,buffers=0"},
    {"offload_inputs", "{offload},min_bytes=1,inputs=1"},
    {"offload_compute_stream", "{offload},min_bytes=65536,stream=compute"},
    {"offload_pageable", "{offload},min_bytes=65536,pinned=0"},
    {"full_and_offload", "checkpoint:mode=full {offload},min_bytes=65536,prefetch=1"},
    {"part_and_offload", "checkpoint:modules={part} {offload},min_bytes=65536,prefetch=1"},
    {"save_and_offload", "selective:save={save} {offload},min_bytes=65536,prefetch=1"},
    {"save_in_part_and_offload", "selective:save={save},modules={part} {offload},min_bytes=65536,prefetch=1"},
    {"chen", "chen"},
    {"chen_square_root", "chen:mode=sqrt"},
    {"rotor_middle", "rotor:budget={middle}"},
    {"rotor_tight", "rotor:budget={tight}"},
    {"capuchin_middle", "capuchin:budget={middle}"},
    {"capuchin_tight", "capuchin:budget={tight}"},
    {"capuchin_swaps", "capuchin:use=swaps,budget={middle}"},
    {"vdnn", "vdnn"},
    {"vdnn_convolutions", "vdnn:layers=conv"},
    {"example_planner", "exec:{source}/policies/planners/example_planner.py,budget={middle}"},
    {"optimizer", "offload:what=optimizer,to=host"},
    {"plan_80", "plan:budget={80%},executable=torch"},
    {"plan_60", "plan:budget={60%},executable=torch"},
    {"plan_50", "plan:budget={50%},executable=torch"},
    {"plan_moves_80", "plan:budget={80%},recompute=0,executable=torch"},
    {"plan_moves_60", "plan:budget={60%},recompute=0,executable=torch"},
    {"plan_moves_50", "plan:budget={50%},recompute=0,executable=torch"},
    {"plan_host", "plan:budget={60%},tiers=host,search=0,executable=torch"},
    {"plan_host_nvme", "plan:budget={60%},tiers=host+nvme,executable=torch"},
    {"revolve_middle", "revolve:budget={middle}"},
    {"revolve_slots", "revolve:slots=4"},
    {"checkmate_middle", "checkmate:budget={middle}"},
    {"checkmate_rounding", "checkmate:mode=rounding,budget={tight}"},
    {"superneurons_middle", "superneurons:budget={middle}"},
    {"superneurons_memory", "superneurons:recompute=memory,offload=dense,budget={tight}"},
    {"mincut", "mincut"},
    {"mincut_aggressive", "mincut:aggressive=1"},
    {"torch_budget_half", "torch_budget:memory_budget=0.5"},
    {"torch_budget_middle", "torch_budget:budget={middle}"},
    {"torch_sac_half", "torch_sac:memory_budget=0.5"},
    {"torch_sac_greedy", "torch_sac:solver=greedy,budget={middle}"},
    {"megatron_selective", "megatron"},
    {"megatron_uniform", "megatron:recompute_granularity=full,recompute_method=uniform,recompute_num_layers=2"},
    {"megatron_block", "megatron:recompute_granularity=full,recompute_method=block,recompute_num_layers=2"},
    {"torchtitan_op", "torchtitan"},
    {"torchtitan_full", "torchtitan:mode=full"},
    {"torchtitan_every_two", "torchtitan:selective_ac_option=2,early_stop=1"},
    {"torchtune", "torchtune"},
    {"torchtune_every_two", "torchtune:ac_option=2"},
    {"torchtune_offload", "torchtune:enable_activation_offloading=1"},
    {"g10_middle", "g10:budget={middle}"},
    {"swapadvisor_middle", "swapadvisor:budget={middle}"},
    {"ssdtrain", "ssdtrain"},
    {"ssdtrain_host", "ssdtrain:to=host"},
    {"deepcompile_middle", "deepcompile:budget={middle}"},
    {"deepcompile_activations", "deepcompile:what=activations,budget={tight}"},
    {"save_on_cpu", "save_on_cpu"},
    {"save_on_cpu_pinned", "save_on_cpu:pin_memory=1"},
    {"reversible", "reversible"},
};

constexpr const char* kQuickCases[] = {"full", "every_two", "part", "offload"};

void replace(std::string& text, const std::string& name, const std::string& value) {
  for (std::size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + value.size()))
    text.replace(at, name.size(), value);
}

DifferentialCase case_of(const DifferentialFamily& family, const CaseText& one) {
  std::string text = one.policies;
  replace(text, "{blocks}", family.blocks);
  replace(text, "{part}", family.part);
  replace(text, "{ops}", family.ops);
  replace(text, "{op}", family.op);
  replace(text, "{save}", family.save);
  replace(text, "{other}", family.other_save);
  replace(text, "{offload}", "offload:what=activations,to=host");
  replace(text, "{source}", MEMWALL_SOURCE);
  DifferentialCase made{std::string(family.name) + "-" + one.name, {}};
  std::istringstream words(text);
  for (std::string policy; words >> policy;) made.policies.push_back(policy);
  return made;
}

}  // namespace

const std::vector<DifferentialFamily>& differential_families() {
  static const std::vector<DifferentialFamily> families = {
      {"gpt2", "h.*", "h.*.attention", "gelu", "gelu+native_layer_norm", "mm+sdpa", "gelu"},
      {"llama", "layers.*", "layers.*.mlp", "silu", "silu+mul", "mm+sdpa", "silu"},
      {"bert", "layer.*", "layer.*.attention", "gelu", "gelu+native_layer_norm", "mm+sdpa", "native_layer_norm"},
      {"resnet", "blocks.*", "stem", "max_pool2d_with_indices", "convolution+_to_copy", "convolution", "_to_copy"},
      {"vit", "blocks.*", "blocks.*.attention", "gelu", "gelu+native_layer_norm", "mm+sdpa", "gelu"},
      {"moe", "layers.*", "layers.*.mlp", "silu", "silu+mul", "mm+sdpa", "silu"},
      {"lstm", "layers.*", "layers.*.norm", "native_layer_norm", "native_layer_norm+stack", "mm",
       "_thnn_fused_lstm_cell"},
      {"unet", "down.*+up.*", "down.*", "silu", "silu+native_group_norm", "convolution", "native_group_norm"},
  };
  return families;
}

std::vector<DifferentialCase> differential_cases(const DifferentialFamily& family) {
  std::vector<DifferentialCase> all;
  for (const CaseText& one : kCases) all.push_back(case_of(family, one));
  return all;
}

std::vector<DifferentialCase> quick_cases(const DifferentialFamily& family) {
  std::vector<DifferentialCase> some;
  for (const CaseText& one : kCases)
    if (std::find(std::begin(kQuickCases), std::end(kQuickCases), std::string(one.name)) != std::end(kQuickCases))
      some.push_back(case_of(family, one));
  return some;
}

std::string with_budget(std::string policy, const std::string& name, long long budget) {
  replace(policy, "{" + name + "}", std::to_string(budget));
  return policy;
}

}  // namespace memwall
