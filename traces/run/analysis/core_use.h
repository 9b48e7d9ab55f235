// How many cores of a host its ranks keep busy. Internal to host_use.
#pragma once

#include <cstddef>
#include <vector>

#include "traces/run/analysis/host_use.h"
#include "traces/run/run.h"

namespace memwall {

// Of every pool of cores that these ranks (indices into RankMachine::views) have. Empty where the number of cores is
// not known, or the run holds no record of its ops.
std::vector<CoreUse> core_use(const Run& run, const std::vector<std::size_t>& ranks);

}  // namespace memwall
