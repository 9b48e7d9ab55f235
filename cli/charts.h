// Figures of a run: what `memwall render` draws.
#pragma once

#include <string>
#include <vector>

#include "traces/figure/figure.h"
#include "traces/run/run.h"

namespace memwall {

Figure timeline_of(const Run& run);  // host threads, streams, copy engines over time
Figure memory_of(const Run& run,
                 const std::string& tier);  // one tier over time, by kind; UsageError for an unknown tier
Figure links_of(const Run& run);            // flow over each link that carried anything
Figure tiers_of(const Run& run);            // peak of every tier, and what the links carried
// Time and memory side by side, and the way from the first run to each other one.
// REQUIRES: at least one run, and as many labels.
Figure comparison_of(const std::vector<Run>& runs, const std::vector<std::string>& labels);

}  // namespace memwall
