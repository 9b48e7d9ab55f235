// The optimizer step of stage 3: gradient norm over all ranks, which the host waits for, then one sub-group after the
// other (parameters one behind the other, at most sub_group_size elements of the rank's partitions): fp32 gradients of
// the sub-group alone, unscale, update, cast into the partitions. Then persistent parameters are gathered again, in one
// call.
//
// With offload_optimizer=cpu sub-groups step on the host, with ratio < 1 the last ones alone, each in turn with those
// on the GPU. With nvme the states of a sub-group are read, updated on the host and written, through pinned buffers as
// large as the largest sub-group; with pipeline_read the next is read while one is updated, with pipeline_write one is
// written while the next is updated. Source: deepspeedai/DeepSpeed, deepspeed/runtime/zero/stage3.py (step,
// _create_fp16_partitions_with_defragmentation, _optimizer_step), deepspeed/runtime/swap_tensor/
// partitioned_optimizer_swapper.py and pipelined_optimizer_swapper.py.
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
};

std::vector<DeepSpeedSubGroup> sub_groups(const ZeroAnalysis& analysis, const FetchPlan& plan,
                                          const DeepSpeedSettings& settings);

// Throws UsageError if the pinned buffers do not hold a sub-group's states.
void step_partitions(DeepSpeedProgram& program, const std::vector<DeepSpeedSubGroup>& groups,
                     const ScatteredGradients& gradients, const DeepSpeedFetches& fetches,
                     const DeepSpeedSettings& settings, DeepSpeedUpdate& update);

}  // namespace memwall
