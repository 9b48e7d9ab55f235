#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "sim/units.h"
#include "traces/emit/emitters.h"

namespace memwall {

void refuse_recompute(const RecomputeChoice& recompute, const std::string& reason, Emission& out) {
  const bool by_name = recompute.which == BlockRecompute::by_name;
  const std::string why = by_name ? recompute.why : reason;
  out.refuse(recompute.name,
             recompute.is_named ? why + "; memwall_apply (traces/apply) carries out the file's list of modules" : why);
}

void miss_fsdp_tuning(const ShardChoice& shard, Emission& out) {
  if (shard.stage == 3)
    out.miss(fmt::format("zero:bucket_bytes={}", shard.bucket_bytes),
             "each module under fully_shard is gathered and reduced as one; there is no size to set");
  if (!shard.overlap) out.miss("zero:overlap=0", "FSDP2 always communicates beside compute");
  if (shard.stage == 3 && shard.overlap && !shard.prefetch)
    out.miss("zero:prefetch=0", "FSDP2 always issues the next gather in backward early");
  if (shard.stage == 3 && shard.reuse_distance > 0)
    out.miss(fmt::format("zero:reuse_distance={}", shard.reuse_distance), "FSDP2 keeps no gathered parameter for that");
}

bool fsdp_offloads(const PlanChoices& choices, Emission& out) {
  if (!choices.moves_model_state()) return false;
  const OffloadChoice& any = choices.optimizer   ? *choices.optimizer
                             : choices.gradients ? *choices.gradients
                                                 : *choices.parameters;
  if (!choices.optimizer || !choices.gradients || !choices.parameters) {
    out.refuse(
        any.name,
        "FSDP's offload to the CPU moves parameters, gradients and optimizer states together, and the plan moves "
        "some of them only (expected offload:what=optimizer+gradients+parameters)");
    return false;
  }
  for (const auto* each : {&*choices.optimizer, &*choices.gradients, &*choices.parameters}) {
    if (each->tier != "host") {
      out.refuse(each->name, "FSDP offloads to the memory of the host only");
      return false;
    }
    if (each->fraction < 1 || each->hides) {
      out.refuse(each->name, "FSDP offloads all of them or none");
      return false;
    }
  }
  if (!choices.optimizer->on_cpu) {
    out.refuse(choices.optimizer->name + ",cpu_adam=0", "FSDP updates parameters that it has offloaded on the CPU");
    return false;
  }
  if (!choices.shard || choices.shard->stage < 2) {
    out.refuse(any.name,
               "FSDP's offload is of parameters that it has split (zero:stage=2 or 3), and the plan splits none");
    return false;
  }
  return true;
}

std::optional<bool> fsdp_reshards(const PlanChoices& choices, Emission& out) {
  if (!choices.shard) return std::nullopt;
  miss_fsdp_tuning(*choices.shard, out);
  if (choices.shard->stage == 3) return true;
  if (choices.shard->stage == 2) {
    out.miss(
        "zero:stage=2",
        "reshard_after_forward=false is the closest: parameters are whole from forward to the end of backward, but "
        "split while the optimizer runs");
    return false;
  }
  return std::nullopt;
}

void miss_reduced_type(const PlanChoices& choices, Emission& out) {
  out.miss(
      choices.gradient_dtype + " gradients",
      fmt::format("accelerate's FSDP2 reduces them in {}, as its mixed precision has one type", choices.compute_dtype));
}

void miss_activation_tuning(const OffloadChoice& offload, std::int64_t least_bytes, Emission& out) {
  if (offload.min_bytes != least_bytes)
    out.miss(fmt::format("{},min_bytes={}", offload.name, offload.min_bytes),
             least_bytes == 0 ? "there is no least size to set"
                              : fmt::format("tensors from {} bytes on go, whatever the plan says", least_bytes));
}

std::int64_t mebibytes_of(std::int64_t bytes) { return std::max<std::int64_t>(1, bytes / MiB(1)); }

std::int64_t elements_of_bytes(std::int64_t bytes, const PlanChoices& choices) {
  return std::max<std::int64_t>(1, bytes / choices.gradient_bytes());
}

}  // namespace memwall
