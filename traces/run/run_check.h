// Do the numbers of a run that was read from a file point at things that exist? Internal to traces/run.
#pragma once

#include "traces/run/column_file.h"
#include "traces/run/run.h"

namespace memwall {

// Throws InputError naming table, row and column of the first index out of range, list of the wrong
// length or time outside the run.
void require_consistent(const Run& run, const ReadContext& context);

}  // namespace memwall
