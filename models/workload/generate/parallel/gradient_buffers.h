// Where the gradients of a rank add up over its micro-batches, and how they are summed over data-parallel ranks:
// Megatron-LM's buffers (revision d98e8a64, megatron/core/distributed/param_and_grad_buffer.py), or each parameter's
// own gradient, reduced behind backward (Megatron-LM's first DistributedDataParallel, DeepSpeed's pipeline).
//
// A buffer holds the parameters of a chunk in reverse order, each from a multiple of 64 elements on, padded to a common
// multiple of 128 and of the data-parallel ranks. With overlap_grad_reduce the first chunk of the first rank is cut
// into buckets of max(40e6, 1e6 x ranks) elements; elsewhere a buffer is one bucket.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "models/workload/generate/operators/communicator.h"
#include "models/workload/generate/parallel/parallel_job.h"
#include "models/workload/generate/parallel/sharded_parameters.h"
#include "models/workload/generate/parallel/token_gradients.h"

namespace memwall {

// How a buffer is laid out, in elements.
struct BufferLayout {
  struct Bucket {
    std::int64_t first = 0, end = 0;          // padded
    std::vector<std::size_t> parameters;      // by their places in the list given
    std::vector<std::int64_t> begins, sizes;  // of each
  };
  std::vector<Bucket> buckets;
  std::int64_t elements() const { return buckets.empty() ? 0 : buckets.back().end; }
};

// `sizes`: elements, in order of registration; `alone`: parameters that have a bucket of their own (a tied embedding).
// `bucket_size` 0: one bucket. REQUIRES: ranks >= 1.
BufferLayout buffer_layout(const std::vector<std::int64_t>& sizes, const std::vector<bool>& alone, std::int64_t ranks,
                           std::int64_t bucket_size);

class GradientBuffers {
 public:
  // `chunks`: the trained parameters of each, in order of registration. Sets their main gradients and hooks. Before
  // begin_step(). What is given must outlive it.
  GradientBuffers(Tape& tape, const ParallelJob& job, std::int64_t rank, Communicator& data,
                  std::vector<std::vector<Parameter*>> chunks, Communicator& tensor);

  bool in_buffers() const { return buffers_ || is_sharded(); }
  // Instead of buffers, are parameters divided too?
  bool is_sharded() const { return !sharded_.empty(); }
  // Those of a chunk. REQUIRES: is_sharded().
  ShardedParameters& sharded(std::int64_t chunk) const { return *sharded_[static_cast<std::size_t>(chunk)]; }
  void set_shares(const Tensor& shares);  // as of ShardedParameters, for all chunks
  // Are gradients of parameters that saw this rank's tokens alone summed within backward?
  bool sums_by_tokens() const { return by_tokens_ != nullptr; }
  // Sets buffers to zero.
  void begin_step();
  // Around the backward pass of one micro-batch.
  void begin_pass(std::int64_t chunk, bool last);
  // Reductions of a chunk begin; nothing where they have, or where they do not overlap. Of divided parameters they are
  // waited for as well.
  void start(std::int64_t chunk);
  // All that has not begun begins, and is waited for.
  void finish();

  // What is reduced together, in the order in which gradients come.
  struct Reduced {
    std::int64_t chunk = 0;
    std::vector<Parameter*> parameters;
  };
  std::vector<Reduced> reduced() const;

  // What the update reads, flat: buckets (or this rank's part of each, where the optimizer is distributed); else
  // gradients of parameters. After finish().
  Tensors for_update() const;
  std::int64_t elements() const;  // padded, of all chunks

 private:
  struct Bucket {
    Tensor buffer;
    std::vector<Parameter*> parameters;
    std::int64_t chunk = 0;
    std::size_t pending = 0;
    bool started = false;
  };
  void make_buffers(std::int64_t chunk, const std::vector<Parameter*>& parameters);
  void arrived(Parameter& parameter, std::size_t bucket);
  void reduce(Bucket& bucket);
  void reduce_own_gradients();
  void reduce_into_partition();

  Tape& tape_;
  const ParallelJob& job_;
  std::int64_t rank_;
  Communicator& data_;
  bool buffers_ = false, by_bucket_ = false, last_ = false;
  bool kept_ = false;  // gradients in 16 bits stay, and are set to zero before each backward (BF16_Optimizer)
  std::int64_t active_chunk_ = -1;
  std::vector<std::vector<Parameter*>> chunks_;
  std::vector<Bucket> buckets_;
  std::vector<std::unique_ptr<ShardedParameters>> sharded_;  // by chunk; empty: parameters are whole
  std::vector<bool> is_reduced_;                             // likewise
  std::unique_ptr<TokenGradients> by_tokens_;
};

}  // namespace memwall
