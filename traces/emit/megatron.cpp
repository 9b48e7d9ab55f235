// Megatron-LM 0.20.0: flags of its training programs, one per line.
#include <fmt/format.h>

#include "traces/emit/emitters.h"

namespace memwall {
namespace {

std::string recompute_flags(const RecomputeChoice& recompute, Emission& out) {
  if (!recompute.any()) return "";
  if (!recompute.whole() || recompute.which == BlockRecompute::every_nth) {
    refuse_recompute(
        recompute,
        recompute.save_operators.empty()
            ? "--recompute-method has groups of layers (uniform) and the first layers (block), not every N-th"
            : "--recompute-granularity selective names modules to run again, not operators to keep",
        out);
    return "";
  }
  if (recompute.early_stop) out.miss(recompute.name + ",early_stop=1", "Megatron-LM runs a layer again to its end");
  const bool first = recompute.which == BlockRecompute::first_blocks;
  if (first) out.note("--recompute-num-layers counts the layers of one pipeline stage.");
  return fmt::format("--recompute-granularity full\n--recompute-method {}\n--recompute-num-layers {}\n",
                     first ? "block" : "uniform", recompute.number);
}

std::string shard_flags(const PlanChoices& choices, Emission& out) {
  if (!choices.shard) return "";
  const ShardChoice& shard = *choices.shard;
  std::string text;
  if (shard.stage > 0) text += "--use-distributed-optimizer\n";
  if (shard.stage > 1)
    text += fmt::format(
        "--use-megatron-fsdp\n--data-parallel-sharding-strategy {}\n--no-gradient-accumulation-fusion\n--ckpt-format "
        "fsdp_dtensor\n",
        shard.stage == 2 ? "optim_grads" : "optim_grads_params");
  if (shard.overlap)
    text += shard.stage == 0 ? "--overlap-grad-reduce\n" : "--overlap-grad-reduce\n--overlap-param-gather\n";
  if (shard.stage > 1) {
    out.miss(fmt::format("zero:bucket_bytes={}", shard.bucket_bytes), "Megatron-FSDP gathers and reduces by module");
  } else if (choices.gradient_bytes() == 0) {
    out.miss(fmt::format("zero:bucket_bytes={}", shard.bucket_bytes),
             "--ddp-bucket-size counts elements, and the plan does not say of which type gradients are; give "
             "--gradient-dtype");
  } else {
    const std::int64_t bucket = elements_of_bytes(shard.bucket_bytes, choices);
    text += fmt::format("--ddp-bucket-size {}\n", bucket);
    out.note(fmt::format("--ddp-bucket-size counts elements: {} bytes of {} are {} elements.", shard.bucket_bytes,
                         choices.gradient_dtype, bucket));
  }
  if (shard.stage == 3 && shard.overlap && !shard.prefetch)
    out.miss("zero:prefetch=0", "with --overlap-param-gather the next gather is issued early");
  if (shard.stage == 3 && shard.reuse_distance > 0)
    out.miss(fmt::format("zero:reuse_distance={}", shard.reuse_distance), "Megatron-FSDP has no such distance");
  return text;
}

std::string optimizer_flags(const PlanChoices& choices, Emission& out) {
  if (choices.parameters)
    out.refuse(choices.parameters->name, "cpu_offloading_weights is a field of the configuration without a flag");
  if (choices.gradients && !choices.optimizer)
    out.refuse(choices.gradients->name, "gradients go to the CPU only with the optimizer (--optimizer-cpu-offload)");
  if (!choices.optimizer) return "";
  const OffloadChoice& offload = *choices.optimizer;
  const std::string reason =
      offload.tier != "host" ? "--optimizer-cpu-offload goes to the memory of the host only"
      : !offload.on_cpu      ? "--optimizer-cpu-offload updates on the CPU"
      : offload.hides        ? "--optimizer-offload-fraction takes a share, which the plan does not say"
      : !choices.shard || choices.shard->stage == 0
          ? "--optimizer-cpu-offload needs --use-precision-aware-optimizer, and that the distributed optimizer "
            "(zero:stage=1 or more)"
          : "";
  if (!reason.empty()) {
    out.refuse(offload.name, reason);
    return "";
  }
  std::string text = "--use-precision-aware-optimizer\n--optimizer-cpu-offload\n";
  text += fmt::format("--optimizer-offload-fraction {}\n", offload.fraction);
  if (offload.beside_compute) text += "--overlap-cpu-optimizer-d2h-h2d\n";
  if (!offload.pinned) text += "--no-pin-cpu-grads\n--no-pin-cpu-params\n";
  return text;
}

std::string batch_flags(const PlanChoices& choices) {
  const std::int64_t all = choices.samples_of_all_ranks();
  if (all == 0) return "";
  return fmt::format("--micro-batch-size {}\n--global-batch-size {}\n", choices.batch.samples, all);
}

std::string type_flags(const PlanChoices& choices, Emission& out) {
  for (const char* type : {"bf16", "fp16"})
    if (choices.is_pure(type)) {
      out.miss(
          fmt::format("{} parameters and gradients", type),
          "Megatron-LM keeps fp32 copies of the parameters beside them, for the optimizer; the plan's step may not");
      return fmt::format("--{}\n", type);
    }
  if (choices.is_autocast())
    out.miss(
        choices.compute_dtype + " matrix products",
        fmt::format("the plan's step is under autocast, its parameters in fp32; --{} holds parameters in {}, which "
                    "is another step",
                    choices.compute_dtype, choices.compute_dtype));
  else if (!choices.compute_dtype.empty() && choices.compute_dtype != "fp32")
    out.miss(choices.compute_dtype + " matrix products",
             "the plan does not say of which type gradients are; give --gradient-dtype");
  return "";
}

}  // namespace

Emission emit_megatron(const PlanChoices& choices, const std::string&) {
  Emission out;
  out.note("These are flags of Megatron-LM 0.20.0, read in its sources and not run.");
  out.text = batch_flags(choices) + type_flags(choices, out) + recompute_flags(choices.recompute, out) +
             shard_flags(choices, out) + optimizer_flags(choices, out);
  if (choices.activations)
    out.refuse(choices.activations->name,
               "--fine-grained-activation-offloading goes by names of Megatron-LM's own modules");
  return out;
}

}  // namespace memwall
