// Where a stage's tensor-parallel groups lie among the ranks that share something (a node, a host, a network card):
// what the price of their messages depends on besides their size.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/workload/generate/parallel/parallel_job.h"

namespace memwall {

// Equal texts: messages within chunks of these pipeline ranks are priced alike, whatever else differs between the jobs.
// `sizes`: how many neighbours by number share something (shared_sizes of sim/machine). "" where tensor is 1.
std::string chunk_places(const ParallelJob& job, std::int64_t pipeline_rank, const std::vector<std::uint32_t>& sizes);

}  // namespace memwall
