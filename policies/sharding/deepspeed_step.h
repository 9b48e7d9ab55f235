// The optimizer step of stages 1 and 2: gradient norm over all ranks, which the host waits for, own gradients flattened
// to fp32, unscaled, the update of the rank's partition, the cast into its slice of the parameters, and one all-gather
// per group of parameters, all in the order of the compute stream. With offload_optimizer=cpu the step runs on the
// host, and the GPU waits; with delayed_parameter_update a thread runs it beside the next step, as Ren et al. 2021,
// "ZeRO-Offload", propose; with zenflow_overlap_step a process does (deepspeed_zenflow.h). Source:
// deepspeedai/DeepSpeed, deepspeed/runtime/zero/stage_1_and_2.py (step).
#pragma once

#include "policies/sharding/deepspeed_layout.h"
#include "policies/sharding/deepspeed_reduction.h"
#include "policies/sharding/deepspeed_update.h"

namespace memwall {

// Pads the parameters' flat buffers, too.
void step_flat_partition(DeepSpeedProgram& program, const FlatLayout& layout, const DeepSpeedReduction& reduced,
                         const DeepSpeedSettings& settings, DeepSpeedUpdate& update, ZenFlow& zenflow);

}  // namespace memwall
