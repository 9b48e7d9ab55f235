// Programs that stand for ranks in equal places alone: of a job on 6 GPUs of a node whose host has a part for each 4,
// the ranks 4 and 5 share theirs with one neighbour, the others with three.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/trace/trace.h"

namespace memwall {

// Does each program stand for ranks in equal places alone? Parameters as below.
bool has_equal_places(const Trace& trace, const std::vector<std::uint32_t>& sizes);

// The same job with programs of their own for ranks that do not share with as many ranks of each program as the first of
// theirs. `sizes`: how many neighbours by number share something, each above 1 (shared_sizes of sim/machine). The fewest
// programs for which that is so; the trace as it is where it holds them already. Throws UsageError where its collectives
// are more than can be numbered. REQUIRES: the trace is sound.
Trace with_equal_places(Trace trace, const std::vector<std::uint32_t>& sizes);

}  // namespace memwall
