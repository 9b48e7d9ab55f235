// Gradients of stages 1 and 2 without contiguous_gradients: they stay where autograd put them, and there are no bucket
// buffers.
//
// A full bucket is flattened into a buffer of its size, divided, all-reduced (whatever reduce_scatter and
// use_multi_rank_bucket_allreduce say) and copied back; one gradient alone is reduced in place. Those of the rank's
// partition live until the step has flattened them. Stage 2 drops the others when their bucket is reduced, stage 1 at
// the end of backward. With overlap_comm the host waits for the device before each bucket, and only then drops what the
// bucket before has left; compute does not wait for the reductions. Source: deepspeedai/DeepSpeed,
// deepspeed/runtime/zero/stage_1_and_2.py (reduce_ipg_grads, buffered_reduce_fallback, allreduce_and_copy,
// independent_gradient_partition_epilogue).
#pragma once

#include <map>
#include <vector>

#include "policies/sharding/deepspeed_program.h"
#include "policies/sharding/deepspeed_settings.h"

namespace memwall {

struct UncopiedGradient {
  StorageId base = kNoStorage;   // of the base trace: what tells it from others
  StorageId whole = kNoStorage;  // where it is
  Bytes bytes = 0;
  bool own = false;          // does the rank's partition touch its parameter?
  std::uint16_t stream = 0;  // that made it
};

class UncopiedGradients {
 public:
  // Both must outlive it.
  UncopiedGradients(DeepSpeedProgram& program, const DeepSpeedSettings& settings) : p_(program), settings_(settings) {}

  void begin_pass(std::uint16_t compute, std::uint16_t reduction) {
    compute_ = compute;
    reduction_ = reduction;
  }
  void reduce(InsertionPoint point, const std::vector<UncopiedGradient>& bucket);
  // Behind a backward's last bucket: own gradients are added to those of the passes before.
  void end_pass(InsertionPoint point);
  // Of a step, which frees them.
  Storages take_own();

  Bytes largest_buffer() const { return largest_buffer_; }
  Bytes own_bytes() const { return own_bytes_; }  // at most

 private:
  void drop_reduced(InsertionPoint point);

  DeepSpeedProgram& p_;
  const DeepSpeedSettings& settings_;
  std::uint16_t compute_ = 0, reduction_ = 0;
  std::vector<UncopiedGradient> own_;    // of this pass
  Storages reduced_;                     // of other partitions, not dropped yet
  std::map<StorageId, StorageId> sums_;  // by gradient of the base: of the step's passes so far
  Bytes largest_buffer_ = 0, own_bytes_ = 0;
};

}  // namespace memwall
