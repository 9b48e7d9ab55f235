// What the passes of one chunk wait for on the device, op by op: their critical path where the host is far ahead.
// Internal to study/layout.
#pragma once

#include <cstdint>
#include <vector>

#include "models/workload/generate/parallel/parallel_job.h"
#include "sim/trace/trace.h"
#include "study/layout/job_pricing.h"
#include "traces/run/analysis/critical_path.h"

namespace memwall {

// An op, and for how long a pass waits for it.
struct OpShare {
  Op op;
  Shape shape;
  TimeClass time_class = TimeClass::idle;
  PathPart part = PathPart::work;
  Duration time{};
};

struct PassPath {
  std::vector<OpShare> forward, backward;
  double gap_share = 0;  // of the host's time that it spends between calls, not in them
};

// Throws what generators, pricing and simulation throw.
PassPath pass_path(const ParallelJob& job, std::int64_t rank, std::int64_t chunk, const JobPricing& pricing);

}  // namespace memwall
