// The optimizer step of stage 3: gradient norm over all ranks, which the host waits for, then one sub-group after the
// other (parameters one behind the other, at most sub_group_size elements of the rank's partitions): fp32 gradients of
// the sub-group alone, unscale, update, cast into the partitions. Then persistent parameters are gathered again, in one
// call.
//
// With offload_optimizer=cpu sub-groups step on the host, with ratio < 1 the last ones alone, each in turn with those
// on the GPU. With nvme the states and fp32 gradients of a sub-group are read, it is updated on the host, and its
// states are written, through a pinned buffer for each tensor; with pipeline_read the next is read while one is
// updated, with pipeline_write one is written while the next is read and updated: each takes as many buffers once more.
// Source: deepspeedai/DeepSpeed, deepspeed/runtime/zero/stage3.py (step, _create_fp16_partitions_with_defragmentation,
// _optimizer_step), deepspeed/runtime/swap_tensor/partitioned_optimizer_swapper.py and pipelined_optimizer_swapper.py.
#pragma once

#include <vector>

#include "policies/sharding/deepspeed_fetch_plan.h"
#include "policies/sharding/deepspeed_fetches.h"
#include "policies/sharding/deepspeed_program.h"
#include "policies/sharding/deepspeed_scatter.h"
#include "policies/sharding/deepspeed_update.h"

namespace memwall {

struct DeepSpeedSubGroup {
  Storages parameters;
  std::int64_t elements = 0;  // of the rank's partitions
  Bytes bytes = 0;            // of these in the parameters' own type
  bool on_host = false;
  Storages in_host_memory, on_nvme;  // of the parameters: where their partitions live with offload_param
  Bytes bytes_on_nvme = 0;
  Bytes swapped_gradients = 0;  // fp32, with offload_optimizer=nvme
};

std::vector<DeepSpeedSubGroup> sub_groups(const ZeroAnalysis& analysis, const FetchPlan& plan,
                                          const DeepSpeedSettings& settings);

// What the optimizer step needs of NVMe; used with offload_optimizer=nvme alone.
struct OptimizerSwap {
  const SwapBuffers* buffers = nullptr;
  GradientSwap* gradients = nullptr;
};

// Throws UsageError if the pinned buffers do not hold a sub-group's tensors.
void step_partitions(DeepSpeedProgram& program, const std::vector<DeepSpeedSubGroup>& groups,
                     const ScatteredGradients& gradients, const DeepSpeedFetches& fetches,
                     const DeepSpeedSettings& settings, DeepSpeedUpdate& update, OptimizerSwap swap,
                     SuperOffload& super);

}  // namespace memwall
