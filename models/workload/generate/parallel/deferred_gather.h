// Updated parameters of a distributed optimizer, gathered in the next step's forward passes (overlap_param_gather):
// Megatron-LM's start_param_sync and finish_param_sync (revision d98e8a64, megatron/core/distributed/
// param_and_grad_buffer.py; megatron/core/pipeline_parallel/schedules.py).
//
// In a plain pipeline a bucket is gathered while the one before it is used. Interleaved, the first two chunks start at
// once, each later one as many passes before its own first as lets all ranks of the pipeline start together.
#pragma once

#include <cstdint>
#include <vector>

#include "models/workload/generate/operators/communicator.h"
#include "models/workload/generate/parallel/gradient_buffers.h"
#include "models/workload/generate/parallel/parallel_job.h"

namespace memwall {

class DeferredGather {
 public:
  // What is given must outlive it.
  DeferredGather(Tape& tape, const ParallelJob& job, std::int64_t rank, Communicator& data,
                 const GradientBuffers& gradients);

  // Before the first pass. Nothing is gathered before.
  void begin_step();
  // Before each forward pass; `number`: of all of the rank's, from 0. `order`: all of them.
  void begin_forward(std::size_t number, const std::vector<PipelinePass>& order);
  // Before a part of a chunk runs forward (ModelPart::about_to_run): waits for its parameters.
  void about_to_run(std::int64_t chunk, std::int64_t part);
  // Likewise of a whole chunk.
  void about_to_run(std::int64_t chunk);

 private:
  struct Bucket {
    std::int64_t chunk = 0;
    std::vector<Parameter*> parameters;
    std::uint32_t event = 0;
    bool started = false, waited = false;
  };
  void start(Bucket& bucket);
  void start_chunk(std::int64_t chunk);
  void wait(std::size_t at);

  Tape& tape_;
  const ParallelJob& job_;
  std::int64_t rank_;
  Communicator& data_;
  std::vector<Bucket> buckets_;  // in the order in which forward needs them
  bool active_ = false;
};

}  // namespace memwall
