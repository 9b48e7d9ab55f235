// transformers 5.23: TrainingArguments as JSON, TrainingArguments(output_dir=..., **json.load(file)).
#include <fmt/format.h>

#include "traces/emit/emitters.h"

namespace memwall {
namespace {

// FSDP2 splits parameters, gradients and states at once; what splits or moves fewer of them is DeepSpeed's.
bool needs_deepspeed(const PlanChoices& choices) {
  const int stage = choices.shard ? choices.shard->stage : 0;
  const bool moves_all = choices.optimizer && choices.gradients && choices.parameters;
  return stage == 1 || stage == 2 || (stage == 3 && choices.moves_model_state() && !moves_all);
}

// Under DeepSpeed bf16 means its own bf16 training: accelerate turns that on. Autocast is DeepSpeed's torch_autocast.
void write_types(JsonText& json, const PlanChoices& choices, bool by_deepspeed, Emission& out) {
  const bool pure = choices.is_pure("bf16") || choices.is_pure("fp16");
  if (by_deepspeed) {
    if (pure) json.field(choices.compute_dtype, true);
  } else if (choices.is_autocast()) {
    json.field(choices.compute_dtype, true);
    if (choices.shard && choices.shard->stage == 3) miss_reduced_type(choices, out);
  } else if (pure) {
    json.field("bf16", false).field("fp16", false);
    out.miss(fmt::format("{} parameters and gradients", choices.gradient_dtype),
             fmt::format("it is the model that has them: load it with dtype=\"{}\"",
                         choices.gradient_dtype == "bf16" ? "bfloat16" : "float16"));
  } else if (!choices.compute_dtype.empty() && choices.compute_dtype != "fp32") {
    out.miss(choices.compute_dtype + " matrix products",
             "the plan does not say of which type gradients are; give --gradient-dtype");
  }
}

void refuse_other_recompute(const RecomputeChoice& recompute, Emission& out) {
  const std::uint32_t n = recompute.number;
  refuse_recompute(
      recompute,
      recompute.which == BlockRecompute::every_nth
          ? fmt::format("activation_checkpointing_kwargs.every_n_layers={} takes blocks 0, {}, ..., and the "
                        "plan blocks {}, {}, ...",
                        n, n, n - 1, 2 * n - 1)
          : "activation_checkpointing takes each block alone, and all that it needs again",
      out);
}

// Does the plan send away what torch.utils.checkpoint keeps of every block?
bool sends_inputs(const PlanChoices& choices, Emission& out) {
  if (!choices.activations) return false;
  const OffloadChoice& offload = *choices.activations;
  if (choices.recompute.every_block_whole() && offload.tier == "host" && offload.fraction == 1 && !offload.hides) {
    miss_activation_tuning(offload, 0, out);
    out.miss(offload.name,
             "only the inputs of checkpointed blocks go, in the compute stream; what is saved outside of blocks stays");
    return true;
  }
  out.refuse(offload.name,
             "activation_checkpointing_kwargs.offload sends the inputs of all checkpointed blocks to the host, and "
             "nothing else; memwall_apply (traces/apply) carries out the file's offload");
  return false;
}

void write_checkpointing(JsonText& json, const PlanChoices& choices, bool under_fsdp, Emission& out) {
  const bool all = choices.recompute.every_block_whole(), offloads = sends_inputs(choices, out);
  if (choices.recompute.any() && !all) refuse_other_recompute(choices.recompute, out);
  if (!all || (under_fsdp && !offloads)) return;
  json.field("activation_checkpointing", true).key("activation_checkpointing_kwargs").begin_object();
  json.field("use_reentrant", false);
  if (!choices.recompute.early_stop) json.field("early_stop", false);
  if (offloads) json.field("offload", true);
  if (under_fsdp)
    out.miss(choices.recompute.name, "fsdp_config's own checkpointing has no offload, and this one gathers parameters "
                                     "once more in backward");
  json.end_object();
}

void write_fsdp(JsonText& json, const PlanChoices& choices, Emission& out) {
  const std::optional<bool> reshards = fsdp_reshards(choices, out);
  const bool offloads = fsdp_offloads(choices, out);
  if (!reshards) return;
  json.field("fsdp", true).key("fsdp_config").begin_object().field("version", 2);
  json.field("reshard_after_forward", *reshards).field("cpu_offload", offloads);
  if (choices.recompute.every_block_whole() && !choices.activations) {
    json.field("activation_checkpointing", true);
    if (!choices.recompute.early_stop)
      out.miss(choices.recompute.name + ",early_stop=0", "fsdp_config.activation_checkpointing stops early");
  }
  json.end_object();
}

}  // namespace

Emission emit_transformers(const PlanChoices& choices, const std::string&) {
  Emission out;
  out.note("These are settings of transformers 5.23: TrainingArguments(output_dir=..., **json.load(open(FILE))).");
  const bool by_deepspeed = needs_deepspeed(choices);
  const bool by_fsdp = !by_deepspeed && choices.shard && choices.shard->stage == 3;
  JsonText json;
  json.begin_object();
  if (choices.batch.samples > 0) json.field("per_device_train_batch_size", choices.batch.samples);
  json.field("gradient_accumulation_steps", choices.batch.forwards);
  write_types(json, choices, by_deepspeed, out);
  write_checkpointing(json, choices, by_fsdp, out);
  if (by_deepspeed) {
    json.key("deepspeed").begin_object().field("train_micro_batch_size_per_gpu", "auto");
    json.field("gradient_accumulation_steps", "auto");
    write_deepspeed_types(json, choices, out);
    write_deepspeed_zero(json, choices, out);
    json.end_object();
    out.note("The value of deepspeed is a configuration of DeepSpeed 0.19.6.");
  } else {
    write_fsdp(json, choices, out);
    if (choices.shard && choices.shard->stage == 0)
      json.field("ddp_bucket_cap_mb", mebibytes_of(choices.shard->bucket_bytes));
  }
  json.end_object();
  out.text = json.finish();
  if (choices.shard) out.note(fmt::format("The plan is of {} ranks: start as many processes.", choices.shard->ranks));
  return out;
}

}  // namespace memwall
