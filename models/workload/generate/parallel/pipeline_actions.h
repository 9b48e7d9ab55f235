// What each rank of an interleaved pipeline of torch.distributed.pipelining does, one action after the other: passes,
// messages, gathers and reductions of a stage's parameters (FSDP2).
//
// torch 2.15, torch/distributed/pipelining/schedules.py, _PipelineScheduleRuntime: the order of passes is lowered for
// all ranks together. The stages of the next passes are unsharded, at most three of a rank (_add_unshard_reshard); a
// stage's gradients are reduced right behind its last backward pass, and waited for (_add_reduce_grad). A receive is
// put behind what its rank has done when the sender, taken in turn, has sent (_add_send_recv): all ranks issue the
// messages that they share in one order, and none waits for ever. Sends of outputs are waited for behind the stage's
// own backward pass, those of gradients at the end (_add_wait_send).
#pragma once

#include <cstdint>
#include <vector>

#include "models/workload/generate/parallel/pipeline_order.h"

namespace memwall {

struct PipelineAction {
  enum class Kind : std::uint8_t {
    unshard,
    reshard,
    forward,
    backward,
    reduce_gradients,
    wait_for_reduction,
    send_output,
    receive_input,
    send_gradient,
    receive_gradient,
    wait_for_output,   // that was sent
    wait_for_gradient  // likewise
  };
  Kind kind = Kind::forward;
  std::int64_t stage = 0;        // of the whole pipeline, from 0
  std::int64_t microbatch = -1;  // -1: of none
  bool operator==(const PipelineAction&) const = default;
};

// Of a rank's stages (max_active_stages): where there are more, some are sharded again between passes.
inline constexpr std::size_t kMostUnshardedStages = 3;

// By rank. REQUIRES: require_schedule() does not throw; shape.chunks is 2 or more.
std::vector<std::vector<PipelineAction>> pipeline_actions(const PipelineShape& shape);

}  // namespace memwall
