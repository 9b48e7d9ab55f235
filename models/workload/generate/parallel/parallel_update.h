// The end of a step of a parallel job, on one rank: gradients that several ranks share are summed, their norm is taken,
// the optimizer updates what it holds, and updated parameters go where they are needed (../shared/spec/parallelism.md,
// 3.8 and 4.3; Megatron-LM, revision d98e8a64, megatron/core/distributed/finalize_model_grads.py,
// megatron/core/optimizer/).
#pragma once

#include <vector>

#include "models/workload/generate/operators/communicator.h"
#include "models/workload/generate/parallel/gradient_buffers.h"
#include "models/workload/generate/parallel/parallel_job.h"

namespace memwall {

// The groups of a rank.
struct RankGroups {
  Communicator &tensor, &data, &world;
  Communicator* tied = nullptr;       // first and last rank of the pipeline, where both have the embedding
  std::uint32_t first_rendezvous = 0;  // numbers from here on are free; kNoRendezvous: nobody to meet
};

class ParallelUpdate {
 public:
  // Makes the optimizer's states (preexisting storages). Before begin_step().
  ParallelUpdate(Tape& tape, const ParallelJob& job, RankGroups groups, GradientBuffers& gradients,
                 std::vector<Parameter*> parameters);

  void run();

 private:
  void sum_by_tokens();
  void sum_tied();
  void check_scaled();
  void cast_up();
  void clip();
  void clip_each();
  void update_each();
  Tensors flattened(const Tensors& gradients);
  void update();
  void write_parameters(const Tensors& values);
  Tensors to_update() const { return cast_.empty() ? gradients_.for_update() : cast_; }
  void gather();
  std::uint32_t meeting(std::uint32_t number) const;

  Tape& tape_;
  const ParallelJob& job_;
  RankGroups groups_;
  GradientBuffers& gradients_;
  std::vector<Parameter*> parameters_;
  Tensor main_, first_, second_;  // flat; this rank's share
  Tensors cast_;                  // gradients of a buffer in 16 bits, cast up
};

}  // namespace memwall
