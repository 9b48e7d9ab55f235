// In which order a rank of a pipeline runs the forward and backward passes of its chunks: Megatron-LM's schedules
// (revision d98e8a64, megatron/core/pipeline_parallel/schedules.py), and GPipe and the interleaved 1F1B of
// torch.distributed.pipelining (torch 2.15, torch/distributed/pipelining/schedules.py, ScheduleInterleaved1F1B), whose
// micro-batches come in rounds of equal size.
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
  // torch: max(1, microbatches / ranks) rounds, in each of which a chunk has equally many micro-batches in a row.
  bool in_rounds = false;
};

// Micro-batches of one chunk that follow each other, behind which the schedule repeats; 1 where a rank has one chunk.
std::int64_t in_a_row(const PipelineShape& shape);

// Throws UsageError with what the framework refuses: where interleaved, fewer micro-batches than a group, a group
// smaller than the pipeline, a last group that is neither empty nor as long as the pipeline; in rounds, micro-batches
// that are no multiple of them. GPipe with several chunks is refused too.
void require_schedule(PipelineSchedule schedule, const PipelineShape& shape);

// Of one rank, by its place in the pipeline. REQUIRES: require_schedule() does not throw; rank < shape.ranks.
std::vector<PipelinePass> pipeline_order(PipelineSchedule schedule, const PipelineShape& shape, std::int64_t rank);

// Forward passes before the first backward pass. REQUIRES: as above.
//   1F1B: min(p - i - 1, m); interleaved: min(2 (p - i - 1) + (v - 1) N, v m), N micro-batches in a row; GPipe: m
std::int64_t warm_up_passes(PipelineSchedule schedule, const PipelineShape& shape, std::int64_t rank);

// The most passes whose activations a rank holds at once, in chunks, counted along an order.
std::int64_t most_in_flight(const std::vector<PipelinePass>& order);

}  // namespace memwall
