// Whether two programs of one network are of the same batch, of another, or of another length, width or image: by the
// shapes of what is paired. Internal to graft.cpp.
#pragma once

#include <vector>

#include "models/workload/graft/graft_report.h"
#include "models/workload/graft/line_pairs.h"
#include "sim/trace/trace.h"

namespace memwall {

// Fills `differing`, `is_of_other_size`, `batch_ratio` and `of_that_ratio` of the report.
void compare_sizes(const Trace& measured, const Trace& complete, const std::vector<LinePair>& pairs,
                   GraftReport& report);

}  // namespace memwall
