// In which order a rank of a pipeline runs the forward and backward passes of its chunks: Megatron-LM's schedules
// (revision d98e8a64, megatron/core/pipeline_parallel/schedules.py) and GPipe (torch.distributed.pipelining).
//
// A rank has one chunk of layers or several (interleave); chunk c of rank i is stage c * pipeline + i. What a chunk
// holds of a micro-batch lives from its forward to its backward pass.
#pragma once

#include <cstdint>
#include <vector>

#include "models/workload/generate/configuration/model_parallel.h"

namespace memwall {

struct PipelinePass {
  bool backward = false;
  std::int64_t chunk = 0, microbatch = 0;
  bool operator==(const PipelinePass&) const = default;
};

struct PipelineShape {
  std::int64_t ranks = 1, chunks = 1, microbatches = 1;
  std::int64_t group = 0;  // micro-batches of one chunk in a row; 0: as many as ranks
};

// Throws UsageError with what the framework refuses: where interleaved, fewer micro-batches than a group, a group
// smaller than the pipeline, a last group that is neither empty nor as long as the pipeline. GPipe with several chunks
// is refused too.
void require_schedule(PipelineSchedule schedule, const PipelineShape& shape);

// Of one rank, by its place in the pipeline. REQUIRES: require_schedule() does not throw; rank < shape.ranks.
std::vector<PipelinePass> pipeline_order(PipelineSchedule schedule, const PipelineShape& shape, std::int64_t rank);

// Forward passes before the first backward pass. REQUIRES: as above.
//   1F1B: min(p - i - 1, m); interleaved: min(2 (p - i - 1) + (v - 1) N, v m); GPipe: m
std::int64_t warm_up_passes(PipelineSchedule schedule, const PipelineShape& shape, std::int64_t rank);

// The most passes whose activations a rank holds at once, in chunks, counted along an order.
std::int64_t most_in_flight(const std::vector<PipelinePass>& order);

}  // namespace memwall
