// The layouts of a job on a number of GPUs that divisibility and the framework allow. Internal to study/layout.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "study/layout/layout_search.h"

namespace memwall {

struct LayoutCandidate {
  ParallelJob job;
  std::uint32_t replicas = 1;  // of the job, made by a policy (study/layout/sharing_job.h)
};

struct LayoutCandidates {
  std::vector<LayoutCandidate> jobs;
  LayoutRefusals refused;  // by the framework or a generator
};

// In a fixed order.
LayoutCandidates layout_candidates(const LayoutRequest& request);

// Bytes of weights, gradients and optimizer states of the fullest stage: a lower bound of its memory.
Bytes state_bytes(const LayoutCandidate& candidate);

}  // namespace memwall
