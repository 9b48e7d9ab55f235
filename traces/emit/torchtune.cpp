// torchtune 0.7.0: keys of the YAML of its recipes, to be merged into one of its own.
#include <fmt/format.h>

#include "traces/emit/emitters.h"

namespace memwall {
namespace {

constexpr std::int64_t kLeastOffloaded = 1024;  // bytes that torchtune's recipes send away

std::string checkpoint_keys(const PlanChoices& choices, Emission& out) {
  const RecomputeChoice& recompute = choices.recompute;
  const bool all = recompute.every_block_whole();
  std::string text = fmt::format("enable_activation_checkpointing: {}\n", all);
  if (recompute.which == BlockRecompute::every_nth && recompute.whole()) {
    text += fmt::format("ac_mode: selective\nac_option: {}\n", recompute.number);
    out.note("ac_mode and ac_option are keys of full_finetune_distributed.");
  } else if (recompute.any() && !all) {
    refuse_recompute(recompute,
                     recompute.save_operators.empty() ? "ac_option names every N-th layer, each alone"
                                                      : "ac_option=op keeps operators of its own list",
                     out);
  }
  if (recompute.whole() && !recompute.early_stop && (all || recompute.which == BlockRecompute::every_nth))
    out.miss(recompute.name + ",early_stop=0", "torchtune stops early");
  const bool offloads = choices.activations && all && choices.activations->tier == "host" &&
                        choices.activations->fraction == 1 && !choices.activations->hides;
  if (offloads) miss_activation_tuning(*choices.activations, kLeastOffloaded, out);
  if (choices.activations && !offloads)
    out.refuse(choices.activations->name,
               all ? "enable_activation_offloading sends all saved tensors to the host, or none"
                   : "enable_activation_offloading needs enable_activation_checkpointing, which the plan has not");
  return text + fmt::format("enable_activation_offloading: {}\n", offloads);
}

std::string type_keys(const PlanChoices& choices, Emission& out) {
  if (choices.is_pure("bf16") || choices.is_pure("fp32")) return fmt::format("dtype: {}\n", choices.gradient_dtype);
  if (choices.is_autocast())
    out.miss(choices.compute_dtype + " matrix products",
             "torchtune trains in one type, without autocast; dtype: bf16 is another step");
  else if (!choices.compute_dtype.empty())
    out.miss(choices.compute_dtype + " matrix products",
             choices.gradient_dtype.empty() ? "the plan does not say of which type gradients are; give --gradient-dtype"
                                            : "torchtune trains in bf16 or fp32");
  return "";
}

}  // namespace

Emission emit_torchtune(const PlanChoices& choices, const std::string& plan) {
  Emission out;
  out.note("These are keys of torchtune 0.7.0, to be merged into the YAML of a recipe.");
  out.text = fmt::format("# torchtune 0.7.0; by memwall emit, of {}\n", plan);
  if (choices.batch.samples > 0) out.text += fmt::format("batch_size: {}\n", choices.batch.samples);
  out.text += fmt::format("gradient_accumulation_steps: {}\n", choices.batch.forwards);
  out.text += type_keys(choices, out);
  out.text += checkpoint_keys(choices, out);
  const bool offloads = fsdp_offloads(choices, out);
  if (const std::optional<bool> reshards = fsdp_reshards(choices, out))
    out.text += fmt::format("data_parallel_shard_dim: {}\nfsdp_reshard_after_forward: {}\nfsdp_cpu_offload: {}\n",
                            choices.shard->ranks, *reshards, offloads);
  else if (choices.shard)
    out.refuse(fmt::format("zero:stage={}", choices.shard->stage),
               "torchtune's recipes split with FSDP2, which splits parameters, gradients and optimizer states");
  return out;
}

}  // namespace memwall
