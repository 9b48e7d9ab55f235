// What PyTorch's allocator reserves in each stage of a job, as in the job written out, without simulating it: each
// rank's calls of the allocator in the order of its program. Of very many micro-batches so few are followed that the
// others only repeat what these did, where comparing the allocator's blocks finds that; else the first ones, which is
// told.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "study/layout/folded_job.h"
#include "study/layout/stage_allocator.h"

namespace memwall {

struct ReservedJob {
  std::vector<ReservedStage> stages;  // by rank of the pipeline
  std::int64_t microbatches = 1;      // of which it is true: all, or the first ones, where no cycle was found
};

// With the default settings of the allocator. `capacity`: of a GPU's memory for the step. `fold_microbatches` false:
// all are followed. `jobs`: threads, each with ranks of its own; the result is the same. Nothing where passes cannot be
// marked (chunk_events), and of FSDP2, whose calls depend on time. Throws what generators throw.
std::optional<ReservedJob> reserved_job(const ParallelJob& job, ChunkCostCache& costs, Bytes capacity,
                                        bool fold_microbatches = true, unsigned jobs = 1);

}  // namespace memwall
