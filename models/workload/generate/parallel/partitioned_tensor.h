// A message of a pipeline where layers are split over tensor-parallel ranks: each rank sends its part of what all of
// them have alike, and the receivers gather it. DeepSpeed does so (deepspeed/runtime/pipe/engine.py:
// is_pipe_partitioned, is_grad_partitioned; deepspeed/runtime/utils.py: PartitionedTensor), and Megatron-LM did
// (megatron/ p2p_communication.py: scatter_gather_tensors_in_pipeline).
//
// A part is flat, [1, elements / ranks, 1].
#pragma once

#include "models/workload/generate/operators/communicator.h"

namespace memwall {

class PartitionedTensor {
 public:
  // `group` must outlive it. `of_deepspeed`: else as Megatron-LM.
  PartitionedTensor(Tape& tape, Communicator& group, bool of_deepspeed)
      : tape_(tape), group_(group), of_deepspeed_(of_deepspeed) {}

  Shape part_shape(const Shape& whole) const;
  // This rank's part: a copy in DeepSpeed (PartitionedTensor.__init__), else a view.
  Tensor part_of(const Tensor& whole) const;
  // All of it, of this shape. In DeepSpeed the host first reads what was sent with the part of its sizes, which it
  // waits for (from_meta); then zeros, a gather into them, and a copy (full). Else a gather alone.
  Tensor whole_of(const Tensor& part, const Shape& whole) const;

 private:
  Tape& tape_;
  Communicator& group_;
  bool of_deepspeed_;
};

}  // namespace memwall
