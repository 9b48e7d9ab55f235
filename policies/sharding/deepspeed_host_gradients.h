// Gradients of the rank's partition on their way to an optimizer on the host (ZeRO-Offload, stages 1 and 2).
//
// With one micro-batch each slice is cast to fp32 on the GPU and copied: 4 bytes per parameter. With several, the first
// sends its whole 16-bit gradient to an accumulator on the host; each later one brings that back, adds it, and sends
// the sum, the last one as the fp32 slice. Source: deepspeedai/DeepSpeed, deepspeed/runtime/zero/stage_1_and_2.py
// (async_accumulate_grad_in_cpu_via_gpu, async_inplace_copy_grad_to_fp32_buffer_from_gpu).
#pragma once

#include <map>
#include <utility>

#include "policies/sharding/deepspeed_layout.h"
#include "policies/sharding/deepspeed_program.h"
#include "policies/sharding/deepspeed_settings.h"

namespace memwall {

// One reduced gradient.
struct ReducedGradient {
  StorageId base = kNoStorage;         // what tells it from others
  std::int64_t elements = 0, own = 0;  // own: in the rank's partition
  Bytes element = 2;
};

class HostGradients {
 public:
  // Does nothing unless the optimizer is offloaded. All must outlive it.
  HostGradients(DeepSpeedProgram& program, const FlatLayout& layout, const DeepSpeedSettings& settings);

  // `source` holds the gradient, reduced, behind the work so far of `stream`. `later`: of a micro-batch that is not the
  // step's first; `last`: of its last.
  void take(InsertionPoint point, std::uint16_t stream, StorageId source, const ReducedGradient& gradient, bool later,
            bool last);

  // fp32, of the rank's partition; kNoStorage: nothing is offloaded.
  StorageId gradients() const { return gradients_; }
  // Of the step before, where the host updates with these (delayed_parameter_update, zenflow_overlap_step); else the
  // same.
  StorageId earlier_gradients() const { return earlier_; }
  // The next step's go where the last step but one had its own.
  void next_step() { std::swap(gradients_, earlier_); }

 private:
  StorageId accumulator(const ReducedGradient& gradient);

  DeepSpeedProgram& p_;
  StorageId gradients_ = kNoStorage, earlier_ = kNoStorage, returned_ = kNoStorage;
  std::map<StorageId, StorageId> accumulators_;  // by what tells gradients apart
};

}  // namespace memwall
