// SuperOffload (stage 3 with offload_optimizer=cpu and super_offload): a worker process runs Adam for a sub-group as
// soon as all its gradients are on the host, while backward goes on; the step waits for what is left. The update is
// speculative: an overflow, which is not simulated, is rolled back by computing the update backwards.
//
// Where a bucket completes sub-groups the host waits for the stream that reduces it, and hands them to the worker,
// which takes one after the other: it copies the fp32 gradients into a buffer of its own and updates. The step copies
// the results back (also in host memory), scales all gradients, casts, and sends. With gradient clipping nothing is
// speculative: the worker updates within the step, while the host waits. Sub-groups that step on the GPU (ratio) are
// the first ones, whose gradients come last. The step's polling of the worker, once a millisecond, is left out. Source:
// deepspeedai/DeepSpeed, deepspeed/runtime/superoffload/superoffload_stage3.py and superoffload_utils.py; Lian et al.
// 2026, "SuperOffload: Unleashing the Power of Large-Scale LLM Training on Superchips", whose casts on the GPU and
// placement by bucket DeepSpeed does not have.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <vector>

#include "policies/sharding/deepspeed_program.h"
#include "policies/sharding/deepspeed_settings.h"
#include "policies/sharding/deepspeed_update.h"

namespace memwall {

struct DeepSpeedSubGroup;

class SuperOffload {
 public:
  // Does nothing unless it is asked for. All must outlive it.
  SuperOffload(DeepSpeedProgram& program, const std::vector<DeepSpeedSubGroup>& groups,
               const DeepSpeedSettings& settings);

  // The gradients of a bucket of the micro-batch before the update are on their way to the host in `stream`.
  void arrived(InsertionPoint point, std::uint16_t stream, const Storages& parameters);
  void end_step();

  // The worker updates beside what is left of backward of step `number`; the host waits for it at `point`, and takes
  // over the results. `gradients`: fp32, on the host.
  void update_beside(std::size_t number, OpId last_backward, InsertionPoint point, DeepSpeedUpdate& update,
                     StorageId gradients);
  // The rest of a sub-group's update on the host, in the step, into `sent`.
  void finish(InsertionPoint point, const DeepSpeedSubGroup& group, DeepSpeedUpdate& update, StorageId gradients,
              const Storages& sent);

 private:
  struct Arrival {
    InsertionPoint point;
    std::size_t group = 0;
  };

  DeepSpeedProgram& p_;
  const std::vector<DeepSpeedSubGroup>& groups_;
  const DeepSpeedSettings& settings_;
  std::map<StorageId, std::size_t> group_of_;   // by parameter
  std::vector<std::size_t> missing_;            // gradients, by sub-group
  std::vector<std::vector<Arrival>> arrivals_;  // by step
  StorageId buffer_ = kNoStorage;               // the worker's
  std::optional<std::uint16_t> thread_;
};

}  // namespace memwall
