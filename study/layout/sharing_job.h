// A layout of torchtitan's without a pipeline, whose replicas share all that they hold: FSDP2, which is a policy on the
// job of one replica. What it frees and when depends on time, so that the job is written out: of few micro-batches,
// since each further one repeats what the one before did, which is measured.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "study/layout/layout_search.h"
#include "traces/run/analysis/step_interval.h"

namespace memwall {

// The policy that makes of a replica's job one of so many replicas: "fsdp:ranks=32,...".
std::string sharing_policy(std::uint32_t replicas);

struct SharingJob {
  FoldedJob outcome;
  std::optional<StepInterval> interval;
};

// `job`: of one replica, whose passes alone are known from `costs`. Throws what generators, policies and the simulation
// throw.
SharingJob sharing_job(const ParallelJob& job, std::uint32_t replicas, ChunkCostCache& costs);
// What PyTorch's allocator reserves of `budget` bytes, of as many micro-batches.
ReservedMemory reserved_of_sharing_job(const ParallelJob& job, std::uint32_t replicas, const Machine& machine,
                                       Bytes budget);

}  // namespace memwall
