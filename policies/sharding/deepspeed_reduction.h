// Gradients of stages 0 to 2 on their way to the optimizer, as DeepSpeed sends them.
//
// Stage 0: behind the last backward before an update, gradients are flattened, all-reduced and copied back, on the
// compute stream. Stages 1 and 2: a hook copies each gradient into a bucket buffer and drops it; a full bucket is
// divided, flattened once more, all-reduced whole (or reduced to each owner), and the gradients of the parameters that
// the rank's partition touches are copied out of it, to the device or to the host. Stage 1 does so behind the last
// backward before an update, with overlap_comm in the hooks of that backward; stage 2 in the hooks of every backward.
//
// Bucket buffers are allocated at a backward's first gradient and live until its end, reduce_bucket_size elements each,
// two of them with overlap_comm. Then reductions run in a stream of their own, and compute waits for what is queued
// there before the next one is launched: at most one is under way. Without contiguous_gradients there are no buffers
// (deepspeed_uncopied_gradients.h). Source: deepspeedai/DeepSpeed,
// deepspeed/runtime/zero/stage_1_and_2.py (reduce_independent_p_g_buckets_and_remove_grads, average_tensor,
// copy_grads_in_partition, independent_gradient_partition_epilogue) and deepspeed/runtime/engine.py
// (buffered_allreduce_fallback).
#pragma once

#include <map>
#include <vector>

#include "policies/sharding/deepspeed_layout.h"
#include "policies/sharding/deepspeed_program.h"
#include "policies/sharding/deepspeed_settings.h"
#include "policies/sharding/deepspeed_zenflow.h"
#include "policies/sharding/zero_analysis.h"

namespace memwall {

// What the simulated rank holds of gradients when an optimizer step begins. Stages 1 and 2.
struct OwnedGradients {
  OpId first_forward = kNoOp, last_backward = kNoOp;
  Storages device;  // buffers, to be freed once they have been used
  // fp32, of the rank's partition, that the host updates with; offload_optimizer. Where it does so beside the next step
  // those of the step before.
  StorageId host = kNoStorage;
  StorageId host_made = kNoStorage;  // of this step
  std::uint16_t stream = 0;          // the compute stream
};

struct DeepSpeedReduction {
  std::vector<OwnedGradients> steps;  // by optimizer step
  std::uint64_t buckets = 0;
  Bytes buffer_bytes = 0;  // of all bucket buffers that live at once
  Bytes owned_bytes = 0;   // of the buffer of whole gradients that the rank's partition touches
};

// Puts the reductions of all backward passes into the program's edit. In stages 1 and 2 each gradient becomes a storage
// that lives until it is in a bucket; those of the base are left unused.
DeepSpeedReduction reduce_as_deepspeed(DeepSpeedProgram& program, const Dataflow& flow, const ZeroAnalysis& analysis,
                                       const FlatLayout& layout, const DeepSpeedSettings& settings, ZenFlow& zenflow);

}  // namespace memwall
