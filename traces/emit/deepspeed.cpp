// DeepSpeed 0.19.6: the JSON that deepspeed.initialize(config=...) takes. Sizes of buckets are elements there.
#include <fmt/format.h>

#include "traces/emit/emitters.h"

namespace memwall {
namespace {

void write_optimizer(JsonText& json, const PlanChoices& choices, int stage, Emission& out) {
  const OffloadChoice& offload = *choices.optimizer;
  const std::string device = deepspeed_device(offload);
  if (device.empty()) {
    out.refuse(offload.name, fmt::format("offload_optimizer has the devices cpu and nvme, not {}", offload.tier));
    return;
  }
  if (stage == 0) {
    out.refuse(offload.name, "offload_optimizer needs ZeRO stage 1, 2 or 3, and the plan has none of them");
    return;
  }
  if (!offload.on_cpu) {
    out.refuse(offload.name + ",cpu_adam=0", "DeepSpeed updates on the CPU whatever it has offloaded");
    return;
  }
  if (offload.hides || (offload.fraction < 1 && stage != 3)) {
    out.refuse(offload.name, "a part of the states (offload_optimizer.ratio) needs ZeRO stage 3");
    return;
  }
  json.key("offload_optimizer").begin_object().field("device", device).field("pin_memory", offload.pinned);
  if (offload.fraction < 1) json.field("ratio", offload.fraction);
  if (device == "nvme") {
    json.field("pipeline_read", offload.pipeline).field("pipeline_write", offload.pipeline);
    out.miss(offload.name, "nvme_path, a folder of your NVMe, is for you to add to offload_optimizer");
  }
  json.end_object();
  if (device == "nvme" && offload.group > 0) json.field("sub_group_size", offload.group);
}

void write_parameters(JsonText& json, const OffloadChoice& offload, int stage, Emission& out) {
  const std::string device = deepspeed_device(offload);
  if (device.empty() || stage != 3 || offload.fraction < 1 || offload.hides) {
    out.refuse(offload.name, device.empty()
                                 ? fmt::format("offload_param has the devices cpu and nvme, not {}", offload.tier)
                             : stage != 3 ? "offload_param needs ZeRO stage 3"
                                          : "offload_param takes all parameters or none");
    return;
  }
  json.key("offload_param").begin_object().field("device", device).field("pin_memory", offload.pinned).end_object();
  if (device == "nvme") out.miss(offload.name, "nvme_path, a folder of your NVMe, is for you to add to offload_param");
}

void write_buckets(JsonText& json, const PlanChoices& choices, Emission& out) {
  const ShardChoice& shard = *choices.shard;
  json.field("overlap_comm", shard.overlap);
  if (choices.gradient_bytes() == 0) {
    out.miss(fmt::format("zero:bucket_bytes={}", shard.bucket_bytes),
             "DeepSpeed counts elements, and the plan does not say of which type gradients are; give --gradient-dtype");
    return;
  }
  const std::int64_t bucket = elements_of_bytes(shard.bucket_bytes, choices);
  json.field("reduce_bucket_size", bucket).field("allgather_bucket_size", bucket);
  if (shard.stage == 3) {
    json.field("stage3_prefetch_bucket_size", shard.prefetch && shard.overlap ? bucket : std::int64_t{0});
    json.field("stage3_max_reuse_distance", shard.reuse_distance / choices.gradient_bytes());
    json.field("stage3_param_persistence_threshold", 0);
  }
  out.note(fmt::format("Sizes of buckets are elements for DeepSpeed: {} bytes of {} are {} elements.",
                       shard.bucket_bytes, choices.gradient_dtype, bucket));
}

}  // namespace

std::string deepspeed_device(const OffloadChoice& offload) {
  return offload.tier == "host" ? "cpu" : offload.tier == "nvme" ? "nvme" : "";
}

void write_deepspeed_zero(JsonText& json, const PlanChoices& choices, Emission& out) {
  const int stage = choices.shard ? choices.shard->stage : 0;
  json.key("zero_optimization").begin_object().field("stage", stage);
  if (choices.shard && stage > 0) write_buckets(json, choices, out);
  if (choices.shard && stage == 0)
    out.miss(fmt::format("zero:bucket_bytes={}", choices.shard->bucket_bytes),
             "DeepSpeed reduces without buckets of a set size at stage 0");
  if (choices.optimizer) write_optimizer(json, choices, stage, out);
  if (choices.gradients && !choices.optimizer)
    out.refuse(choices.gradients->name, "DeepSpeed sends gradients to the CPU only with the optimizer's states");
  if (choices.parameters) write_parameters(json, *choices.parameters, stage, out);
  json.end_object();
}

void write_deepspeed_types(JsonText& json, const PlanChoices& choices, Emission& out) {
  for (const char* type : {"bf16", "fp16"}) {
    if (choices.is_pure(type)) {
      json.key(type).begin_object().field("enabled", true).end_object();
      out.miss(fmt::format("{} parameters and gradients", type),
               "DeepSpeed keeps fp32 copies of the parameters beside them, for the optimizer; the plan's step may not");
    }
    if (choices.is_autocast() && choices.compute_dtype == type)
      json.key("torch_autocast")
          .begin_object()
          .field("enabled", true)
          .field("dtype", std::string_view(type) == "bf16" ? "bfloat16" : "float16")
          .end_object();
  }
  if (choices.gradient_dtype.empty() && !choices.compute_dtype.empty() && choices.compute_dtype != "fp32")
    out.miss(choices.compute_dtype + " matrix products",
             "the plan does not say of which type gradients are, hence not whether that is autocast; give "
             "--gradient-dtype");
}

Emission emit_deepspeed(const PlanChoices& choices, const std::string&) {
  Emission out;
  out.note("These are settings of DeepSpeed 0.19.6, for deepspeed.initialize(config=FILE).");
  JsonText json;
  json.begin_object();
  if (choices.batch.samples > 0) json.field("train_micro_batch_size_per_gpu", choices.batch.samples);
  json.field("gradient_accumulation_steps", choices.batch.forwards);
  write_deepspeed_types(json, choices, out);
  write_deepspeed_zero(json, choices, out);
  json.end_object();
  out.text = json.finish();
  if (choices.recompute.any())
    refuse_recompute(choices.recompute,
                     "activation_checkpointing configures only models that call deepspeed.checkpointing themselves",
                     out);
  if (choices.activations)
    out.refuse(choices.activations->name,
               "activation_checkpointing.cpu_checkpointing is of models that call deepspeed.checkpointing themselves; "
               "memwall_apply (traces/apply) carries out the file's offload");
  if (choices.shard) out.note(fmt::format("The plan is of {} ranks: start as many processes.", choices.shard->ranks));
  return out;
}

}  // namespace memwall
