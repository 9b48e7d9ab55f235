// accelerate 1.15: the YAML that `accelerate launch --config_file` takes.
#include <fmt/format.h>

#include "traces/emit/emitters.h"

namespace memwall {
namespace {

std::string mixed_precision(const PlanChoices& choices, bool by_fsdp, bool by_deepspeed, Emission& out) {
  const bool pure = choices.is_pure("bf16") || choices.is_pure("fp16");
  if (by_deepspeed && pure) return choices.compute_dtype;
  if (by_deepspeed && choices.is_autocast()) {
    out.miss(choices.compute_dtype + " matrix products",
             "with DeepSpeed mixed_precision holds parameters and gradients in that type, which is another step; "
             "torch_autocast stands in a file of DeepSpeed's own");
    return "'no'";
  }
  if (choices.is_autocast()) {
    if (by_fsdp) miss_reduced_type(choices, out);
    return choices.compute_dtype;
  }
  if (pure)
    out.miss(fmt::format("{} parameters and gradients", choices.gradient_dtype),
             fmt::format("it is the model that has them: load it in {}", choices.gradient_dtype));
  else if (!choices.compute_dtype.empty() && choices.compute_dtype != "fp32")
    out.miss(choices.compute_dtype + " matrix products",
             "the plan does not say of which type gradients are; give --gradient-dtype");
  return "'no'";
}

// Where FSDP does not checkpoint, nothing of accelerate does.
void refuse_activations(const PlanChoices& choices, const std::string& reason, Emission& out) {
  if (choices.recompute.any()) refuse_recompute(choices.recompute, reason, out);
  if (choices.activations) out.refuse(choices.activations->name, reason);
}

std::string checkpointing(const PlanChoices& choices, Emission& out) {
  const bool all = choices.recompute.every_block_whole();
  if (choices.recompute.any() && !all)
    refuse_recompute(choices.recompute, "fsdp_activation_checkpointing takes every wrapped module alone", out);
  if (all && !choices.recompute.early_stop)
    out.miss(choices.recompute.name + ",early_stop=0", "fsdp_activation_checkpointing stops early");
  bool offloads = false;
  if (choices.activations) {
    const OffloadChoice& offload = *choices.activations;
    offloads = all && offload.tier == "host" && offload.fraction == 1 && !offload.hides;
    if (offloads) {
      miss_activation_tuning(offload, 0, out);
      out.miss(offload.name, "only the inputs of checkpointed modules go; what is saved outside of them stays");
    } else {
      out.refuse(offload.name,
                 "fsdp_activation_checkpointing_offload sends the inputs of all checkpointed modules to the host, and "
                 "nothing else; memwall_apply (traces/apply) carries out the file's offload");
    }
  }
  return fmt::format("  fsdp_activation_checkpointing: {}\n{}", all,
                     offloads ? "  fsdp_activation_checkpointing_offload: true\n" : "");
}

std::string fsdp_config(const PlanChoices& choices, bool reshards, Emission& out) {
  const bool offloads = fsdp_offloads(choices, out);
  return fmt::format(
             "fsdp_config:\n  fsdp_version: 2\n  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n"
             "  fsdp_reshard_after_forward: {}\n  fsdp_offload_params: {}\n",
             reshards, offloads) +
         checkpointing(choices, out);
}

// The few keys of DeepSpeed's that accelerate's own file has.
std::string deepspeed_config(const PlanChoices& choices, Emission& out) {
  const ShardChoice& shard = *choices.shard;
  std::string text = fmt::format("deepspeed_config:\n  gradient_accumulation_steps: {}\n  zero_stage: {}\n",
                                 choices.batch.forwards, shard.stage);
  out.miss(fmt::format("zero:bucket_bytes={}", shard.bucket_bytes),
           "sizes and overlap stand in a file of DeepSpeed's own: `memwall emit --for deepspeed`, and "
           "deepspeed_config_file");
  // What DeepSpeed cannot do is said as it is said of DeepSpeed's own file.
  Emission zero;
  JsonText unused;
  unused.begin_object();
  write_deepspeed_zero(unused, choices, zero);
  for (LeftOut& each : zero.left_out)
    if (each.essential) out.left_out.push_back(std::move(each));
  const bool refused = !zero.carries_out_the_plan();
  const auto device = [&](const std::optional<OffloadChoice>& offload) {
    return offload && !refused ? deepspeed_device(*offload) : std::string("none");
  };
  text += fmt::format("  offload_optimizer_device: {}\n  offload_param_device: {}\n", device(choices.optimizer),
                      device(choices.parameters));
  for (const auto* each : {&choices.optimizer, &choices.parameters}) {
    if (!*each || refused) continue;
    if ((*each)->tier == "nvme") out.miss((*each)->name, "the folder of your NVMe is for you to add (..._nvme_path)");
    if ((*each)->fraction < 1)
      out.refuse((*each)->name, "accelerate's file has no share of the states; DeepSpeed's has");
  }
  refuse_activations(choices, "with DeepSpeed it is the model that checkpoints, not accelerate", out);
  return text;
}

}  // namespace

Emission emit_accelerate(const PlanChoices& choices, const std::string& plan) {
  Emission out;
  out.note("These are settings of accelerate 1.15, for accelerate launch --config_file FILE.");
  const int stage = choices.shard ? choices.shard->stage : 0;
  const bool moves_all = choices.optimizer && choices.gradients && choices.parameters;
  // FSDP2 splits all three; stage 2 by FSDP only where blocks are run again, which DeepSpeed leaves to the model.
  const bool by_fsdp = (stage == 3 && (!choices.moves_model_state() || moves_all)) ||
                       (stage == 2 && choices.recompute.any() && !choices.moves_model_state());
  const bool by_deepspeed = stage > 0 && !by_fsdp;
  const char* const type = by_fsdp ? "FSDP" : by_deepspeed ? "DEEPSPEED" : choices.shard ? "MULTI_GPU" : "'NO'";
  out.text = fmt::format(
      "# accelerate 1.15; by memwall emit, of {}\ncompute_environment: LOCAL_MACHINE\n"
      "distributed_type: {}\nmixed_precision: {}\nnum_processes: {}\n",
      plan, type, mixed_precision(choices, by_fsdp, by_deepspeed, out), choices.shard ? choices.shard->ranks : 1);
  if (by_fsdp) {
    out.text += fsdp_config(choices, *fsdp_reshards(choices, out), out);
  } else if (by_deepspeed) {
    out.text += deepspeed_config(choices, out);
  } else {
    refuse_activations(choices, "accelerate checkpoints with FSDP only (zero:stage=2 or 3)", out);
    (void)fsdp_offloads(choices, out);
    if (choices.shard)
      out.miss(fmt::format("zero:bucket_bytes={}", choices.shard->bucket_bytes),
               "it is bucket_cap_mb of DistributedDataParallelKwargs, in the program");
  }
  if (choices.batch.samples > 0)
    out.miss(fmt::format("{} samples per forward pass", choices.batch.samples),
             "accelerate leaves the batch to the program's data loader");
  return out;
}

}  // namespace memwall
