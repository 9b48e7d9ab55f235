// What a run's memory lacks, in words: of what the bytes are counted that are missing.
#pragma once

#include <string>

#include "traces/run/analysis/summary.h"

namespace memwall {

// For the title of a table: "; missing: peak less usable", for those causes that tiers have; "" where it fits.
std::string missing_meaning(const RunSummary& summary);
// One sentence per tier that was overdrawn: "750000000 bytes (750.0 MB) are missing in tier hbm, which has ..."; ""
// where it fits.
std::string missing_sentence(const RunSummary& summary);

}  // namespace memwall
