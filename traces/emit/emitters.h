// One function per framework, and what several of them say alike. Internal to traces/emit.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sim/json_text.h"
#include "traces/emit/emission.h"
#include "traces/emit/plan_choices.h"

namespace memwall {

// Each writes the version that it knows, all that can be said, and a sentence on the rest. `plan`: the file's name.
Emission emit_deepspeed(const PlanChoices& choices, const std::string& plan);
Emission emit_fsdp2(const PlanChoices& choices, const std::string& plan);
Emission emit_torchtitan(const PlanChoices& choices, const std::string& plan);
Emission emit_megatron(const PlanChoices& choices, const std::string& plan);
Emission emit_transformers(const PlanChoices& choices, const std::string& plan);
Emission emit_accelerate(const PlanChoices& choices, const std::string& plan);
Emission emit_torchtune(const PlanChoices& choices, const std::string& plan);

// The object of DeepSpeed's "zero_optimization", where the plan needs one.
void write_deepspeed_zero(JsonText& json, const PlanChoices& choices, Emission& out);
// DeepSpeed's types: bf16, fp16 or autocast.
void write_deepspeed_types(JsonText& json, const PlanChoices& choices, Emission& out);
// "cpu", "nvme"; "" = DeepSpeed has no such device.
std::string deepspeed_device(const OffloadChoice& offload);

// What only memwall_apply carries out: selective recompute, and modules by name.
void refuse_recompute(const RecomputeChoice& recompute, const std::string& reason, Emission& out);
// Said by no setting of FSDP2, whichever program calls it: bucket sizes, reuse, overlap switched off.
void miss_fsdp_tuning(const ShardChoice& shard, Emission& out);
// fully_shard with CPUOffloadPolicy moves parameters, gradients and optimizer states together: does the plan? Where it
// moves some of them only, or elsewhere, that is refused.
bool fsdp_offloads(const PlanChoices& choices, Emission& out);
// ZeRO stages as reshard_after_forward: 3 = true, 2 = false; nothing, with a sentence, of others.
std::optional<bool> fsdp_reshards(const PlanChoices& choices, Emission& out);
// accelerate's FSDP2 reduces gradients in the type of matrix products, autocast or not.
void miss_reduced_type(const PlanChoices& choices, Emission& out);
// Every tensor that leaves is said by one switch: share, least size and tier are not.
void miss_activation_tuning(const OffloadChoice& offload, std::int64_t least_bytes, Emission& out);

// Of a size that is counted in MiB, at least 1.
std::int64_t mebibytes_of(std::int64_t bytes);
// bytes in elements of a gradient, at least 1. REQUIRES: gradient_bytes() > 0.
std::int64_t elements_of_bytes(std::int64_t bytes, const PlanChoices& choices);

}  // namespace memwall
